package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, MergeRows, Project, RowLevelWrite}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.{RowLevelOperation, RowLevelOperationTable}
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.internals.plans.{MergeKeys, RepeatableRows}
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * A MERGE of few rows joins them to the rows of the table where these are read.
 *
 * Spark wants rows of the source that match nothing too, and no join that sends one side everywhere knows these: it would
 * send the whole table through a shuffle, sort it, and, if files are rewritten, shuffle it once more to bring
 * together what was read together. So rows of the table are joined to a source that is sent everywhere, which moves none
 * of them; what matches nothing is found by itself, which takes the columns of the condition only.
 *
 * The source is wanted in several places then, and by Spark's first look. To read it has to be cheap, and to give the same rows.
 */
private[lakelog] object SmallSources extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = Joining

  private object Joining extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan match {
      case write: RowLevelWrite =>
        // By its children, which keeps the tags of the write.
        joined(write, write.query).fold(plan)(query => write.withNewChildren(Seq(query)))
      case _ => plan
    }
  }

  /** The plan with another join; None if it has to stay. */
  private def joined(write: RowLevelWrite, query: LogicalPlan): Option[LogicalPlan] = for {
    (table, operation) <- target(write.table)
    rows <- query.collectFirst { case rows: MergeRows => rows }
    join <- beneath(rows.child)
  } yield {
    val small = SmallSource.of(join, table)
    operation match {
      case each: RowOperation
          if !RepeatableRows.lakesWithSubqueries(query).exists(_.facts.ownId == table.facts.ownId) =>
        each.keys = MergeKeys.of(rows, join, table, copies = each.isInstanceOf[CopyOnWrite])
        each.keys.foreach(_.setFor(table))
      case _ =>
    }
    operation match {
      case whole: CopyOnWrite => whole.staysTogether = small.isDefined
      case _ =>
    }
    small.fold(query)(found => query.transform { case same: Join if same eq join => found.joined })
  }

  private def target(plan: LogicalPlan): Option[(LakeTable, RowLevelOperation)] = plan match {
    case PlanInternals.TableOf(RowLevelOperationTable(table: LakeTable, operation)) => Some((table, operation))
    case _ => None
  }

  private def beneath(plan: LogicalPlan): Option[Join] = plan match {
    case project: Project => beneath(project.child)
    case join: Join => Some(join)
    case _ => None
  }
}
