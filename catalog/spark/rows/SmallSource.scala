package org.apache.spark.sql.lakelog

import java.util.{Set => JSet}

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeMap, AttributeReference, AttributeSet, EqualNullSafe, Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.{FullOuter, Inner, JoinType, LeftAnti, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A join on `condition` of a table's rows to a source that is small enough to be sent to all tasks. Its rows of the table
 * are those of `target` that `filters` leave.
 */
private[lakelog] final class SmallSource private (
    join: Join, table: LakeTable, target: DataSourceV2Relation, filters: Seq[Expression], condition: Expression) {

  private val ofSource: Seq[Attribute] = join.right.output.filter(condition.references.contains)

  /** The rows of the join, of which those without a row of the table come last. */
  def joined: LogicalPlan = join.joinType match {
    case FullOuter => Union(Seq(matching(LeftOuter), unmatched))
    case RightOuter => Union(Seq(matching(Inner), unmatched))
    case same => matching(same)
  }

  private def matching(kind: JoinType): Join =
    join.copy(joinType = kind, hint = join.hint.copy(rightHint = Some(HintInfo(Some(BROADCAST)))))

  /** Rows of the source that nothing matches, with NULLs for the table's columns; few, so that one task writes them. */
  private def unmatched: LogicalPlan = {
    val (source, columns) = anew(join.right)
    val (found, matched) = matches
    val same = ofSource.zip(matched).map { case (column, there) => EqualNullSafe(columns(column), there) }
    val rest = Join(source, found, LeftAnti, same.reduceOption[Expression](And(_, _)), SmallSource.ToAll)
    val nulls = join.left.output.map(column => Alias(Literal(null, column.dataType), column.name)())
    Project(nulls ++ join.right.output.map(columns(_)), Repartition(1, shuffle = true, rest))
  }

  /** What those rows of the source have in the condition's columns that match a row of the table, each once. */
  private def matches: (LogicalPlan, Seq[Attribute]) = {
    val (source, columns) = anew(join.right)
    val fresh = target.output.map(_.newInstance().asInstanceOf[AttributeReference])
    val renamed = AttributeMap[Attribute](target.output.zip(fresh) ++ ofSource.map(column => column -> columns(column)))
    def here(expression: Expression): Expression = expression.transform {
      case column: AttributeReference => renamed.get(column).getOrElse(column)
    }
    val rows: LogicalPlan = target.copy(table = new RowsAgain(table), output = fresh)
    val left = filters.map(here).reduceOption[Expression](And(_, _)).fold(rows)(Filter(_, rows))
    val wanted = target.output.filter(condition.references.contains).map(renamed(_))
    val keys = ofSource.map(columns(_))
    val pairs = Join(Project(wanted, left), Project(keys, source), Inner, Some(here(condition)), SmallSource.ToAll)
    (Aggregate(keys, keys, Project(keys, pairs)), keys)
  }

  /** The source's rows once more, with columns of their own. */
  private def anew(source: LogicalPlan): (LogicalPlan, AttributeMap[Attribute]) = {
    val copy = DeduplicateRelations(Join(source, source, Inner, None, JoinHint.NONE)).children(1)
    val named = copy.output.map(column => Alias(column, column.name)())
    (Project(named, copy), AttributeMap(source.output.zip(named.map(_.toAttribute))))
  }
}

private[lakelog] object SmallSource {

  private val ToAll = JoinHint(None, Some(HintInfo(Some(BROADCAST))))

  /** None where the source is none, or where another join would not give the same rows. */
  def of(join: Join, table: LakeTable): Option[SmallSource] =
    if (join.hint.rightHint.isDefined || ExtractEquiJoinKeys.unapply(join).isEmpty) None
    else for {
      condition <- join.condition.filter(isPlain)
      (target, filters) <- reading(join.left)
      known = AttributeSet(target.output ++ join.right.output)
      if (condition +: filters).forall(_.references.subsetOf(known))
      if condition.references.forall(column => !join.right.outputSet.contains(column) || isExact(column.dataType))
      if isSmall(join.right)
    } yield new SmallSource(join, table, target, filters, condition)

  private def isPlain(expression: Expression): Boolean =
    expression.deterministic && !SubqueryExpression.hasSubquery(expression)

  /** The rows of the table that are to be changed, and what filters them. */
  private def reading(plan: LogicalPlan): Option[(DataSourceV2Relation, Seq[Expression])] = plan match {
    case Project(_, child) => reading(child)
    case Filter(condition, child) if isPlain(condition) =>
      reading(child).map { case (target, filters) => (target, filters :+ condition) }
    case relation: DataSourceV2Relation if relation.table.isInstanceOf[RowLevelOperationTable] => Some((relation, Nil))
    case _ => None
  }

  private def isSmall(source: LogicalPlan): Boolean = {
    val limit = SparkInternals.conf.autoBroadcastJoinThreshold
    source.deterministic && bytes(source).exists(_ <= limit)
  }

  /** How large the source is; None where reading it again would cost much or give other rows. */
  private def bytes(source: LogicalPlan): Option[BigInt] = source match {
    case Project(columns, child) if columns.forall(isPlain) => bytes(child)
    case Filter(condition, child) if isPlain(condition) => bytes(child)
    case _: LocalRelation | _: InMemoryRelation | _: OneRowRelation | _: Range => Some(source.stats.sizeInBytes)
    case files: LogicalRelation if files.relation.isInstanceOf[HadoopFsRelation] => Some(files.stats.sizeInBytes)
    case relation: DataSourceV2Relation => relation.table match {
      // Whatever Spark builds to ask for statistics counts as a scan by the statement.
      case lake: LakeTable => Some(BigInt(lake.bytes(relation.options)))
      case _: FileTable => Some(relation.stats.sizeInBytes)
      case _ => None
    }
    case _ => None
  }

  /** Whether values that are equal are the same, so that what holds for one of them holds for the other. */
  private def isExact(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | BooleanType | DateType | TimestampType | TimestampNTZType |
        BinaryType | _: DecimalType => true
    case text: StringType => text == StringType
    case _ => false
  }
}

/**
 * The table whose rows a statement changes, read once more for what it reads of these anyway: that counts as no other place
 * where the statement reads the table.
 */
private final class RowsAgain(table: LakeTable) extends Table with SupportsRead {
  override def name(): String = table.name
  override def columns(): Array[org.apache.spark.sql.connector.catalog.Column] = table.columns()
  override def capabilities(): JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new LakeScanBuilder(table, ReadTogether.joined(table), options, counts = false)
}
