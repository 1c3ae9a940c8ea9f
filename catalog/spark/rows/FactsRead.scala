package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, AttributeReference, Exists, Expression, OuterReference}
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * Has a statement read the metadata columns of its target that it names, in a plan that lacks them: Spark reads those that
 * the writer asks for, and no others.
 */
private[lakelog] final class FactsRead(table: LakeTable, query: LogicalPlan) {

  /** What a MERGE that only inserts looks its rows up in: it reads the table as any query does. */
  private val looked = query.collectFirst { case Join(_, right, LeftAnti, _, _) => right }

  private def isTarget(plan: LogicalPlan): Boolean = plan match {
    case PlanInternals.TableOf(_: RowLevelOperationTable) => true
    case PlanInternals.TableOf(_: LakeTable) => looked.exists(_ eq plan)
    case _ => false
  }

  private def isFact(column: Attribute): Boolean = table.physical.metadata.fact(column.name).isDefined

  /** Those that the statement reads anyway. A schema that has evolved has others by the same names. */
  private val there = query.collect {
    case plan if isTarget(plan) => plan.output.filter(isFact)
  }.headOption.getOrElse(Nil)

  /** Those, and those that the statement names beside them. */
  private val all = query.collect { case plan => wanted(plan) }.flatten.foldLeft[Seq[Attribute]](there) {
    (all, column) => if (all.exists(_.name.equalsIgnoreCase(column.name))) all else all :+ column
  }

  private def known(column: AttributeReference): Attribute =
    all.find(_.name.equalsIgnoreCase(column.name)).getOrElse(column)

  /** The rows to be written. */
  def rows: LogicalPlan = query.transformUp {
    case plan if wanted(plan).nonEmpty =>
      val columns = wanted(plan)
      val missing = columns.filter(column => known(column) == column)
      named(plan.mapChildren(reading(_, missing)), columns)
  }

  private def wanted(plan: LogicalPlan): Seq[AttributeReference] =
    plan.missingInput.toSeq.collect { case column: AttributeReference if isFact(column) => column }

  private def named(plan: LogicalPlan, columns: Seq[AttributeReference]): LogicalPlan = plan.transformExpressions {
    case column: AttributeReference if columns.exists(_.exprId == column.exprId) => known(column)
  }

  /** The part of a plan that reads the table's rows, with these columns too. */
  private def reading(plan: LogicalPlan, columns: Seq[AttributeReference]): LogicalPlan = plan match {
    case relation if isTarget(relation) =>
      PlanInternals.withColumns(relation, output => output ++ columns.filterNot(relation.outputSet.contains))
    case project: Project if reads(project) =>
      val missing = columns.filterNot(project.outputSet.contains)
      project.copy(projectList = project.projectList ++ missing, child = reading(project.child, columns))
    case other if reads(other) => other.mapChildren(reading(_, columns))
    case other => other
  }

  private def reads(plan: LogicalPlan): Boolean = plan.exists(isTarget)

  /** A condition on the table's rows. */
  def condition(condition: Expression): Expression = condition.transform {
    case column: AttributeReference if isFact(column) && !source.exists(_.outputSet.contains(column)) => known(column)
  }

  /**
   * The condition of the first look of a MERGE. Spark takes them for columns of its source, which has none of them, and may
   * not have seen that the source has metadata columns itself.
   */
  def inLook(look: Expression): Expression = look match {
    case exists: Exists => exists.plan match {
        case filter: Filter =>
          val columns =
            filter.missingInput.toSeq.collect { case column: AttributeReference if isFact(column) => column }
          val seen = source.filter(_ => filter.child.exists(_.missingInput.nonEmpty)).getOrElse(filter.child)
          val columnsSeen = AttributeMap(filter.child.output.zip(seen.output))
          val outer = filter.condition.transformDown {
            case column: AttributeReference if columns.exists(_.exprId == column.exprId) => OuterReference(known(column))
            case column: AttributeReference => columnsSeen.getOrElse(column, column)
          }
          exists.copy(
            plan = filter.copy(condition = outer, child = seen),
            outerAttrs = exists.outerAttrs ++ columns.map(known))
        case _ => exists
      }
    case other => condition(other)
  }

  private def source: Option[LogicalPlan] =
    query.collectFirst { case join: Join => join.right }.collect { case Project(_, source) => source }
}
