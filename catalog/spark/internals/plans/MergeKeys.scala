package org.apache.spark.sql.lakelog.internals.plans

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, EqualTo, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, MergeRows, Project}
import org.apache.spark.sql.connector.expressions.{Expression => V2Expression, LiteralValue}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.SourceFiles
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, IntegralType}

/**
 * What a MERGE compares with columns of its target: a row of the target that has none of the source's values in these
 * matches no row of it, so that it makes no difference to the MERGE.
 *
 * The driver reads the source for these once more: if another change is in the way, and before the target is read if
 * that has Bloom filters of them.
 */
private[lakelog] final class MergeKeys private (
    pairs: Seq[(Attribute, Expression)], source: LogicalPlan, isSmall: Boolean) {

  private val read = RepeatableRows.lakes(source).map(table => table -> ReadTogether.joined(table))
  private val files = new SourceFiles(RepeatableRows.fileIndexes(source))

  /** What all rows of the target satisfy that match; None if the source has too many rows, or other ones now. */
  def condition: Option[wire.Expression] =
    // A query of its own reads the version that was loaded.
    if (read.exists { case (table, together) => together.versionIfSettled(table) != table.facts.version }) None
    else values(PlanInternals.distinctRows(_, source, MergeKeys.Limit)).filter(_ => files.areSame).map { keys =>
      wire.Expression.Operation("AND",
        keys.map { case (column, dataType, there) =>
          wire.Expression.Operation(
            "IN", wire.Expression.Column(Seq(column)) +: there.map(Predicates.literalOf(_, dataType)))
        })
    }

  /** Each column, the type of what it is compared with, and the values that this has. */
  private def values(rows: Seq[Expression] => Option[Seq[InternalRow]]): Option[Seq[(String, DataType, Seq[Any])]] =
    rows(pairs.map(_._2)).map { found =>
      pairs.zipWithIndex.map { case ((column, value), at) =>
        (column.name, value.dataType, found.filterNot(_.isNullAt(at)).map(_.get(at, value.dataType)).distinct)
      }
    }

  /** Has scans of the table by the statement read nothing else, if its files have Bloom filters of them. */
  def setFor(table: LakeTable): Unit =
    if (isSmall && pairs.exists { case (column, _) => table.hasBloomFilter(Seq(column.name)) }) {
      ProcessState.ofStatement.map(_(MergeKeys.slot)).foreach { known =>
        known.synchronized(known.update(MergeKeys.place(table), this))
      }
    }

  /**
   * Filters of the rows of the target that can match, to be known before any of these is read; Nil if the source has too many
   * rows. It must be the source that the statement reads, whatever happens meanwhile: so there are none if that reads
   * files of others, and all tables are read at the version that was loaded.
   */
  lazy val predicates: Seq[Predicate] =
    if (!files.isEmpty || read.exists { case (table, together) => together.version(table) != table.facts.version }) Nil
    else
      values(PlanInternals.firstRows(_, source, MergeKeys.Limit)).toSeq.flatten.map { case (column, dataType, there) =>
        new Predicate("IN",
          (SchemaInternals.reference(Seq(column)) +: there.map(LiteralValue(_, dataType))).toArray[V2Expression])
      }
}

private[lakelog] object MergeKeys extends PredicateHelper {

  /** What the statement that is being optimised looks for in the table, if it reads it for nothing else. */
  def known(table: LakeTable): Option[MergeKeys] =
    ProcessState.ofStatement.map(_(slot)).flatMap(known => known.synchronized(known.get(place(table))))

  /** By where the table's requests go and its id, if the statement reads it for nothing else. */
  private val slot = new ProcessState.Slot(() => mutable.Map.empty[(AnyRef, String), MergeKeys])

  private def place(table: LakeTable): (AnyRef, String) = (table.access.channel.source, table.facts.ownId)

  /** So many rows of a source are sent along with a commit. */
  private val Limit = 10000

  /**
   * None if rows of the target matter that match none of the source, if no column is compared by itself, and if
   * the source may give other rows when it is read again. `copies`: the MERGE copies rows that it does not change.
   */
  def of(rows: MergeRows, join: Join, table: LakeTable, copies: Boolean): Option[MergeKeys] = {
    val onlyMatches = rows.notMatchedBySourceInstructions.length <= (if (copies) 1 else 0)
    val target = join.left.collectFirst {
      case relation: DataSourceV2Relation if relation.table.isInstanceOf[RowLevelOperationTable] => relation.outputSet
    }
    val pairs = for {
      columns <- target.toSeq
      part <- (join.condition.toSeq ++ filters(join.left)).flatMap(splitConjunctivePredicates)
      (column, value) <- compared(part) if columns.contains(column) && table.schema.fieldNames.contains(column.name)
      if value.references.subsetOf(join.right.outputSet) && RepeatableRows.isPlain(value)
    } yield column -> value
    if (onlyMatches && pairs.nonEmpty && RepeatableRows.areRepeatable(join.right))
      Some(new MergeKeys(pairs, join.right, RepeatableRows.areFew(join.right)))
    else None
  }

  /** What ON has become if a source of one row is a constant: a filter of the target's rows. */
  private def filters(target: LogicalPlan): Seq[Expression] = target match {
    case Filter(condition, child) => condition +: filters(child)
    case Project(_, child) => filters(child)
    case _ => Nil
  }

  /** A column and what it is compared with, each way round. */
  private def compared(part: Expression): Seq[(Attribute, Expression)] = part match {
    case EqualTo(left, right) if RepeatableRows.isExact(left.dataType) =>
      Seq(column(left).map(_ -> right), column(right).map(_ -> left)).flatten
    case _ => Nil
  }

  private def column(side: Expression): Option[Attribute] = side match {
    case column: Attribute => Some(column)
    case cast: Cast => (cast.child, cast.child.dataType, cast.dataType) match {
        case (column: Attribute, from: IntegralType, to: IntegralType) if from.defaultSize <= to.defaultSize =>
          Some(column)
        case _ => None
      }
    case _ => None
  }
}
