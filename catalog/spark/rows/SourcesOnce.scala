package org.apache.spark.sql.lakelog.rows

import scala.collection.mutable

import org.apache.spark.sql.lakelog.internals.seam.RowChanges
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{And, Attribute, AttributeSet, Exists, Expression, OuterReference, SubqueryExpression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Distinct, Filter, Join, LogicalPlan, MergeRows, Project, ReplaceData, RowLevelWrite, SubqueryAlias, Union, View, WriteDelta}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals}
import org.apache.spark.sql.lakelog.internals.plans.{KeptRows, RepeatableRows, RowStore}

/**
 * Has each statement that changes rows see one and the same source, or subquery.
 *
 * Spark computes them once to find out which files have rows that match, and once more to change these rows. A source that
 * gives other rows the second time would lose rows and insert keys twice. So what is not known to give the same rows again is
 * stored by the statement, or the first look is left out if that costs nothing.
 */
private[lakelog] object SourcesOnce extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case write: RowLevelWrite => RowOperation.of(write).fold[LogicalPlan](write) { operation =>
          if (operation.command == Command.MERGE) merged(write, operation) else changed(write, operation)
        }
    }
  }

  private def firstLook(write: RowLevelWrite): Option[Expression] = write match {
    case replace: ReplaceData => replace.groupFilterCondition
    case delta: WriteDelta => RowChanges.firstLook(delta)
    case _ => None
  }

  private def planned(write: RowLevelWrite, query: LogicalPlan, look: Option[Expression]): RowLevelWrite = write match {
    case replace: ReplaceData => replace.copy(query = query, groupFilterCondition = look)
    case delta: WriteDelta => RowChanges.lookingFirst(delta.copy(query = query), look)
    case other => other
  }

  // ---- the source of a MERGE

  private def merged(write: RowLevelWrite, operation: RowOperation): LogicalPlan = {
    val found = for {
      rows <- write.query.collectFirst { case rows: MergeRows => rows }
      join <- rows.child.collectFirst { case join: Join => join }
      (marks, source) <- source(join.right) if !RepeatableRows.areSame(source)
    } yield {
      val seen = firstLook(write).filter(_ => operation.looksFirst).flatMap(looking(_, source))
      if (seen.isDefined || RepeatableRows.areFewOfFiles(source)) {
        val store = new RowStore
        val wanted = AttributeSet(
          above(rows, join) ++ join.condition.toSeq.flatMap(_.references) ++ seen.toSeq.flatMap(_.wanted))
        val columns = source.output.filter(wanted.contains)
        val kept = KeptRows(columns, source, Some(store))
        planned(write, joined(write.query, join, marks, kept), seen.map(_.over(columns, store)))
      } else planned(write, joined(write.query, join, marks, KeptRows(source.output, source, None)), None)
    }
    found.getOrElse(planned(write, write.query, firstLook(write).filter(isPlain)))
  }

  /** What a plan takes of the join that is part of it. */
  private def above(plan: LogicalPlan, join: Join): AttributeSet =
    if (plan eq join) AttributeSet.empty
    else AttributeSet.fromAttributeSets(plan.references +: plan.children.map(above(_, join)))

  /** Whether the first look compares what the statement itself compares: a user's function may say something else then. */
  private def isPlain(look: Expression): Boolean = look match {
    case exists: Exists => exists.plan match {
        case filter: Filter => RepeatableRows.isPlain(filter.condition)
        case _ => false
      }
    case _ => false
  }

  /** The source as the statement has it, beneath Spark's mark on each of its rows; None once it is computed once. */
  private def source(side: LogicalPlan): Option[(Project, LogicalPlan)] = side match {
    case Project(_, _: KeptRows) => None
    case marks @ Project(_, source) => Some((marks, source))
    case _ => None
  }

  private def joined(query: LogicalPlan, join: Join, marks: Project, kept: KeptRows): LogicalPlan = {
    val there = AttributeSet(kept.columns)
    val marked = marks.copy(
      projectList = marks.projectList.filter {
        case column: Attribute => there.contains(column)
        case _ => true
      },
      child = kept)
    query.transform { case same: Join if same eq join => same.copy(right = marked) }
  }

  /** The first look of a MERGE, which asks whether the source has a row for that of the table. */
  private final case class Look(exists: Exists, filter: Filter, source: LogicalPlan) {

    /** The columns of the source that it compares, as the statement has them. */
    def wanted: Seq[Attribute] = {
      val compared = filter.condition.references
      filter.child.output.zip(source.output).collect { case (here, there) if compared.contains(here) => there }
    }

    def over(columns: Seq[Attribute], store: RowStore): Expression = {
      val stored = AttributeSet(columns)
      val here = filter.child.output.zip(source.output).collect { case (here, there) if stored.contains(there) => here }
      exists.copy(plan = filter.copy(child = KeptRows(here, filter.child, Some(store))))
    }
  }

  private def looking(look: Expression, source: LogicalPlan): Option[Look] = look match {
    case exists: Exists => exists.plan match {
        case filter: Filter
            if RepeatableRows.isPlain(filter.condition) && filter.child.output.length == source.output.length =>
          Some(Look(exists, filter, source))
        case _ => None
      }
    case _ => None
  }

  // ---- the subqueries of a DELETE or UPDATE

  private def changed(write: RowLevelWrite, operation: RowOperation): LogicalPlan = {
    operation.functions = functions(write.condition).distinct
    if (subqueries(write.condition).forall(RepeatableRows.areSame)) ofOneMind(write, operation, write.condition)
    else {
      val stores = mutable.Map.empty[LogicalPlan, RowStore]
      def stored(expression: Expression): Expression = expression.transform {
        case subquery: SubqueryExpression if !RepeatableRows.areSame(subquery.plan) =>
          subquery.withNewPlan(kept(subquery.plan, plan => stores.getOrElseUpdate(plan.canonicalized, new RowStore)))
      }
      val query = write.query.transform { case part => part.mapExpressions(stored) }
      val look = firstLook(write).filter(_ => operation.looksFirst).map(stored)
      val isSame = subqueries(stored(write.condition)).forall(isFixed)
      if (!isSame && write.isInstanceOf[ReplaceData] && operation.command == Command.UPDATE) throw Failures.unsupported(
        s"The condition of the UPDATE of ${operation.name} has a subquery that could give other rows each time that it is " +
          "computed, and that depends on rows of the table: write its rows to a table first, and name that.")
      ofOneMind(planned(write, query, if (isSame) look else None), operation, stored(write.condition))
    }
  }

  /** The statement by this condition. Spark would refuse one that is not deterministic with its whole plan. */
  private def ofOneMind(write: RowLevelWrite, operation: RowOperation, condition: Expression): LogicalPlan = {
    condition.find(part => !part.deterministic && part.children.forall(_.deterministic)).foreach { part =>
      throw Failures.unsupported(
        s"The condition of the ${operation.command} of ${operation.name} has ${part.prettyName}(), which is another value " +
          "each time that it is computed: choose rows by their columns, or compute it in a subquery or in the source of a " +
          "MERGE.")
    }
    write match {
      case replace: ReplaceData => replace.copy(condition = condition)
      case delta: WriteDelta => delta.copy(condition = condition)
      case other => other
    }
  }

  /** The names of the users' functions that are computed for each row. */
  private def functions(condition: Expression): Seq[String] =
    condition.collect { case function: UserDefinedExpression => function.name }

  private def subqueries(expression: Expression): Seq[LogicalPlan] =
    expression.collect { case subquery: SubqueryExpression => subquery.plan }

  /** The plan of a subquery, of which all that does not depend on rows outside of it is stored. */
  private def kept(plan: LogicalPlan, store: LogicalPlan => RowStore): LogicalPlan =
    if (RepeatableRows.areSame(plan)) plan
    else if (!plan.exists(isOuter)) KeptRows(plan.output, plan, Some(store(plan)))
    else plan match {
      case Filter(condition, child) =>
        val (outer, own) = PlanInternals.conjuncts(condition).partition(part =>
          part.exists(_.isInstanceOf[OuterReference]) || SubqueryExpression.hasSubquery(part))
        val below = own.reduceOption[Expression](And(_, _))
          .fold(child)(Filter(_, child))
        outer.reduceOption[Expression](And(_, _))
          .fold(kept(below, store))(Filter(_, kept(below, store)))
      case other => other.mapChildren(kept(_, store))
    }

  /** Whether subqueries give the same rows again, of those that they read: what is below them is stored, or does so itself. */
  private def isFixed(expression: Expression): Boolean =
    !expression.exists(RepeatableRows.isOfChance) && subqueries(expression).forall(isFixed)

  private def isFixed(plan: LogicalPlan): Boolean = RepeatableRows.areSame(plan) || (plan match {
    case _: Aggregate | _: Filter | _: Project | _: Join | _: Union | _: Distinct | _: SubqueryAlias | _: View =>
      plan.expressions.forall(part => part.deterministic && isFixed(part)) && plan.children.forall(isFixed)
    case _ => false
  })

  private def isOuter(plan: LogicalPlan): Boolean =
    plan.expressions.exists(_.exists {
      case _: OuterReference => true
      case subquery: SubqueryExpression => subquery.plan.exists(isOuter)
      case _ => false
    })
}
