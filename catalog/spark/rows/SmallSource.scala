package org.apache.spark.sql.lakelog.rows

import java.util.{Set => JSet}

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeMap, AttributeReference, AttributeSet, EqualNullSafe, Expression, Literal, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.{FullOuter, Inner, JoinType, LeftAnti, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.catalog.{SupportsRead, TableCapability}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.internals.plans.RepeatableRows
import org.apache.spark.sql.lakelog.internals.seam.NewerTable
import org.apache.spark.sql.lakelog.read.LakeScanBuilder
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A join on `condition` of a table's rows to a source that is small enough to be sent to all tasks. Its rows of the table
 * are those of `target` that `filters` leave.
 */
private[lakelog] final class SmallSource private (
    join: Join, table: LakeTable, target: DataSourceV2Relation, filters: Seq[Expression], condition: Expression)
  extends PredicateHelper {

  private val ofSource: Seq[Attribute] = join.right.output.filter(condition.references.contains)

  /**
   * The source's rows by an exchange, which is the same wherever they are wanted, so that Spark reads them once, unless the
   * condition has parts that are about the source alone. It names all columns, of which Spark would take fewer otherwise.
   */
  private val once: LogicalPlan = RepartitionByExpression(join.right.output, join.right, 1)

  /** The rows of the join, of which those without a row of the table come last. */
  def joined: LogicalPlan = join.joinType match {
    case FullOuter => Union(Seq(matching(LeftOuter, once), unmatched))
    case RightOuter => Union(Seq(matching(Inner, once), unmatched))
    case same => matching(same, join.right)
  }

  private def matching(kind: JoinType, source: LogicalPlan): Join =
    join.copy(right = source, joinType = kind, hint = join.hint.copy(rightHint = SmallSource.ToAll.rightHint))

  /**
   * Rows of the source that nothing matches, with NULLs for the table's columns; few, so that one task writes them. What
   * matches comes by a shuffle, as Spark does not wait long for a broadcast, and the whole table may have to be read first.
   */
  private def unmatched: LogicalPlan = {
    val (source, columns) = anew
    val (found, matched) = matches
    val same = ofSource.zip(matched).map { case (column, there) => EqualNullSafe(columns(column), there) }
    val rest = Join(
      source, Repartition(1, shuffle = true, found), LeftAnti, same.reduceOption[Expression](And(_, _)),
      SmallSource.Here)
    val nulls = join.left.output.map(column => Alias(Literal(null, column.dataType), column.name)())
    Project(nulls ++ join.right.output.map(columns(_)), rest)
  }

  /**
   * What those rows of the source have in the condition's columns that match a row of the table, each once. What the
   * condition wants of the table alone is a filter of its own, by which files of the table need not be read.
   */
  private def matches: (LogicalPlan, Seq[Attribute]) = {
    val (source, columns) = anew
    val fresh = target.output.map(_.newInstance().asInstanceOf[AttributeReference])
    val renamed = AttributeMap[Attribute](target.output.zip(fresh) ++ ofSource.map(column => column -> columns(column)))
    def here(expressions: Seq[Expression]): Option[Expression] = expressions.map(_.transform {
      case column: AttributeReference => renamed.get(column).getOrElse(column)
    }).reduceOption(And(_, _))
    val (ofTable, ofBoth) = splitConjunctivePredicates(condition).partition(_.references.subsetOf(target.outputSet))
    val rows: LogicalPlan = target.copy(table = new RowsAgain(table), output = fresh)
    val left = here(filters ++ ofTable).fold(rows)(Filter(_, rows))
    val wanted = target.output.filter(AttributeSet(ofBoth.flatMap(_.references)).contains).map(renamed(_))
    val keys = ofSource.map(columns(_))
    val pairs = Join(Project(wanted, left), Project(keys, source), Inner, here(ofBoth), SmallSource.ToAll)
    (Aggregate(keys, keys, Project(keys, pairs)), keys)
  }

  /** The source's rows once more, with columns of their own. */
  private def anew: (LogicalPlan, AttributeMap[Attribute]) = {
    val copy = PlanInternals.again(once)
    val named = copy.output.map(column => Alias(column, column.name)())
    (Project(named, copy), AttributeMap(join.right.output.zip(named.map(_.toAttribute))))
  }
}

private[lakelog] object SmallSource {

  private val ToAll = JoinHint(None, Some(HintInfo(Some(BROADCAST))))
  private val Here = JoinHint(None, Some(HintInfo(Some(SHUFFLE_HASH))))

  /** None if the source is none, or if another join would not give the same rows. */
  def of(join: Join, table: LakeTable): Option[SmallSource] =
    if (join.hint.rightHint.isDefined || !PlanInternals.isEquiJoin(join)) None
    else for {
      condition <- join.condition.filter(RepeatableRows.isPlain)
      (target, filters) <- reading(join.left)
      known = AttributeSet(target.output ++ join.right.output)
      if (condition +: filters).forall(_.references.subsetOf(known))
      if condition.references.forall(column =>
        !join.right.outputSet.contains(column) || RepeatableRows.isExact(column.dataType))
      if RepeatableRows.areFew(join.right)
    } yield new SmallSource(join, table, target, filters, condition)

  /** The rows of the table that are to be changed, and what filters them. */
  private def reading(plan: LogicalPlan): Option[(DataSourceV2Relation, Seq[Expression])] = plan match {
    case Project(_, child) => reading(child)
    case Filter(condition, child) if RepeatableRows.isPlain(condition) =>
      reading(child).map { case (target, filters) => (target, filters :+ condition) }
    case relation: DataSourceV2Relation if relation.table.isInstanceOf[RowLevelOperationTable] => Some((relation, Nil))
    case _ => None
  }
}

/**
 * The table whose rows a statement changes, read once more for what it reads of these anyway: that counts as no other place
 * where the statement reads the table.
 */
private final class RowsAgain(table: LakeTable) extends NewerTable with SupportsRead {
  override def name(): String = table.name
  override def columns(): Array[org.apache.spark.sql.connector.catalog.Column] = table.columns()
  override def capabilities(): JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new LakeScanBuilder(table, ReadTogether.joined(table), options, counts = false)
}
