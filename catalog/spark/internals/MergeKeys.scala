package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, EqualTo, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, MergeRows, Project}
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.IntegralType

/**
 * What a MERGE compares with columns of its target: a row of the target that has none of the source's values in these
 * matches no row of it, so that it makes no difference to the MERGE.
 *
 * The driver reads the source for these once more, and only where another change is in the way.
 */
private[lakelog] final class MergeKeys private (pairs: Seq[(Attribute, Expression)], source: LogicalPlan) {

  private val read = RepeatableRows.lakes(source).map(table => table -> ReadTogether.joined(table))
  private val files = new SourceFiles(RepeatableRows.fileIndexes(source))

  /** What all rows of the target satisfy that match; None where the source has too many rows, or other ones now. */
  def condition: Option[wire.Expression] =
    // A query of its own reads the version that was loaded.
    if (read.exists { case (table, together) => together.versionIfSettled(table) != table.facts.version }) None
    else PlanInternals.distinctRows(pairs.map(_._2), source, MergeKeys.Limit).filter(_ => files.areSame).map { rows =>
      wire.Expression.Operation("AND",
        pairs.zipWithIndex.map { case ((column, value), at) =>
          val there = rows.filterNot(_.isNullAt(at)).map(_.get(at, value.dataType)).distinct
          wire.Expression.Operation(
            "IN", wire.Expression.Column(Seq(column.name)) +: there.map(Predicates.literalOf(_, value.dataType)))
        })
    }
}

private[lakelog] object MergeKeys extends PredicateHelper {

  /** So many rows of a source are sent along with a commit. */
  private val Limit = 10000

  /**
   * None where rows of the target matter that match none of the source, where no column is compared by itself, and where
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
      Some(new MergeKeys(pairs, join.right))
    else None
  }

  /** What ON has become where a source of one row is a constant: a filter of the target's rows. */
  private def filters(target: LogicalPlan): Seq[Expression] = target match {
    case Filter(condition, child) => condition +: filters(child)
    case Project(_, child) => filters(child)
    case _ => Nil
  }

  /** A column and what it is compared with, each way round. */
  private def compared(part: Expression): Seq[(Attribute, Expression)] = part match {
    case EqualTo(left, right) if SmallSource.isExact(left.dataType) =>
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
