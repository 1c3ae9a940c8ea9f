package org.apache.spark.sql.lakelog.internals.streams

import scala.annotation.tailrec

import org.apache.spark.sql.lakelog.internals.seam.{Changelog, ChangelogContext, Changes, DeduplicationMode}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, StreamingDataSourceV2ScanRelation}
import org.apache.spark.sql.lakelog.changes.{ChangesOptions, ChangesScan}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.lakelog.read.LakeStream
import org.apache.spark.sql.lakelog.wire

/**
 * The changes of a stream as a query has asked for them: without rows that were only copied, with updates as such, or net.
 * So are the net changes of a query, because Spark takes a row that a rollback has brought back for an updated one.
 *
 * Of a stream, Spark would compare them by an aggregation with a state, for every row that was ever inserted, and give them
 * back one batch later. But a batch has whole versions, so that nothing outside of it matters: here the changes of a batch are
 * compared by themselves, and not at all if no row can have several of them. Of the `columns`, which are unknown until
 * the table is found, one has the row's id, and the others its version, the version of the change, and its kind.
 */
private[lakelog] final case class ComparedChanges(
    child: LogicalPlan, asked: ChangelogContext, columns: Seq[Attribute] = Nil)
  extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override lazy val resolved: Boolean = childrenResolved && columns.nonEmpty

  override protected def withNewChildInternal(newChild: LogicalPlan): ComparedChanges = copy(child = newChild)
}

private[lakelog] object ComparedChanges {

  private val (version, change) = ("_commit_version", "_change_type")

  /** Asks Spark for the changes as they are. */
  object Statement extends EarlyRewrite {
    override protected val rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
      case Changes.Named(named, asked)
          if isComparedHere(named.isStreaming, asked) && LakeNames.isTable(named.multipartIdentifier) =>
        ComparedChanges(Changes.Named(named, Changes.raw(asked)), asked)
    }
  }

  private def isComparedHere(isStreaming: Boolean, asked: ChangelogContext): Boolean =
    if (isStreaming || !Changes.areComparedBySpark) ChangesOptions.areCompared(asked)
    else asked.deduplicationMode == DeduplicationMode.NET_CHANGES

  /** Finds the columns by which changes are compared. */
  object Resolution extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "org.apache.spark.sql.lakelog.ComparedChanges"
      override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
        case compared @ ComparedChanges(child, asked, Nil) if child.resolved =>
          changelog(child).fold[LogicalPlan](compared)(found => compared.copy(columns = columns(child, asked, found)))
      }
    }
  }

  private def changelog(plan: LogicalPlan): Option[Changelog] = plan.collectFirst { case Changes.Read(changes) =>
    changes
  }

  private def columns(child: LogicalPlan, asked: ChangelogContext, changes: Changelog): Seq[Attribute] = {
    if (asked.deduplicationMode == DeduplicationMode.NONE && changes.containsCarryoverRows())
      Changes.refuseCopies(changes.name())
    def column(name: String): Attribute = child.output.find(_.name == name).getOrElse(
      throw new IllegalStateException(s"The changes have no column $name"))
    def referred(reference: NamedReference): Attribute = column(reference.fieldNames.head)
    Seq(referred(changes.rowId().head), referred(changes.rowVersion()), column(version), column(change))
  }

  /** Compares changes only if there may be several of one row. */
  object Strategy extends (SparkSession => SparkStrategy) {
    override def apply(session: SparkSession): SparkStrategy = new SparkStrategy {
      override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
        case ComparedChanges(child, asked, columns) =>
          val comparison = RowComparison.of(asked, among(child).getOrElse(Anything))
          Seq(comparison.fold(planLater(child))(ComparedChangesExec(planLater(child), columns, _)))
        case _ => Nil
      }
    }
  }

  /** Of changes of which nothing is known. */
  private val Anything = wire.StreamBatchFiles(mayCarry = true, mayUpdate = true, mayRepeat = true)

  /** What may be among the changes that a plan reads. Adaptive execution plans anew once some of it has run. */
  @tailrec
  private def among(plan: LogicalPlan): Option[wire.StreamBatchFiles] = plan match {
    case LogicalQueryStage(logical, _) => among(logical)
    case StreamingDataSourceV2ScanRelation(_, _, _, stream: LakeStream, Some(start), Some(end)) =>
      Some(stream.among(start, end))
    case relation: DataSourceV2ScanRelation => relation.scan match {
        case scan: ChangesScan => Some(scan.changes.among)
        case _ => None
      }
    case other if other.children.length == 1 => among(other.children.head)
    case _ => None
  }
}
