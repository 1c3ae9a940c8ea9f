package org.apache.spark.sql.lakelog.internals

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.{InternalRow, QueryPlanningTracker}
import org.apache.spark.sql.catalyst.analysis.{DeduplicateRelations, EliminateSubqueryAliases, NamedRelation, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, Expression, Literal, PredicateHelper, V2ExpressionUtils}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, Distinct, Join, JoinHint, Limit, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableWritePrivilege}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.internals.seam.{Changes, Statements}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

/** What Spark makes of plans, and of texts that are some. */
private[lakelog] object PlanInternals extends PredicateHelper {

  private def state = SparkSession.active.sessionState

  /**
   * What Spark makes of a plan that it has not seen yet; AnalysisException if Spark refuses it. Rules of the analyzer ask too,
   * in which Spark would not compute defaults: nor would it those of the columns of a relation that `plan` makes.
   */
  def analyzed(session: org.apache.spark.sql.SparkSession, plan: => LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(
      session.asInstanceOf[SparkSession].sessionState.analyzer.executeAndCheck(plan, new QueryPlanningTracker))

  /** What Spark's parser, with all extensions of the session, makes of a statement. */
  def parsed(text: String): LogicalPlan = state.sqlParser.parsePlan(text)

  def expression(text: String): Expression = state.sqlParser.parseExpression(text)

  def nameParts(text: String): Seq[String] = state.sqlParser.parseMultipartIdentifier(text)

  /** The values of expressions that depend on no row, texts as such; None if one of them is not so plain. */
  def constants(expressions: Seq[Expression]): Option[Seq[Any]] = {
    val values = expressions.collect { case constant if constant.resolved && constant.foldable => constant.eval() }
    if (values.length < expressions.length || values.contains(null)) None
    else Some(values.map { case text: UTF8String => text.toString; case other => other })
  }

  /** The changes of a table that options describe, as those of a DataFrame's reader do. */
  def changes(name: Seq[String], options: Map[String, String]): LogicalPlan = {
    val said = new CaseInsensitiveStringMap(options.asJava)
    changes(UnresolvedRelation(name), said)
  }

  def changes(relation: UnresolvedRelation, options: CaseInsensitiveStringMap): LogicalPlan =
    Changes.asked(relation.copy(options = options), options, state.conf.sessionLocalTimeZone)

  /** What a write names as its table, found or not. */
  type Target = NamedRelation

  /** The table of that name, to add and replace rows. */
  def toWrite(name: Seq[String]): UnresolvedRelation =
    Statements.toWrite(UnresolvedRelation(name), Set(TableWritePrivilege.INSERT, TableWritePrivilege.DELETE))

  /** Runs a command as a statement of its own. */
  def run(session: org.apache.spark.sql.SparkSession, command: LogicalPlan): Unit =
    session.asInstanceOf[SparkSession].sessionState.executePlan(command).assertCommandExecuted()

  /** A table to write to with some of its options: Spark gives it those of the write too. */
  def withOptions(target: Target, some: Map[String, String] => Map[String, String]): Target = {
    def of(options: CaseInsensitiveStringMap) =
      new CaseInsensitiveStringMap(some(options.asCaseSensitiveMap.asScala.toMap).asJava)
    target match {
      case name: UnresolvedRelation => name.copy(options = of(name.options))
      case relation: DataSourceV2Relation => relation.copy(options = of(relation.options))
      case other => other
    }
  }

  /** The plan of a query in the session as it is, with its names resolved. */
  def ofQuery(text: String): LogicalPlan = state.executePlan(state.sqlParser.parsePlan(text)).analyzed

  /** The plan of the table or view of that name. */
  def ofTable(name: String): LogicalPlan = SparkSession.active.table(name).queryExecution.analyzed

  /** A condition as one of Spark's own; None if it has none for it. */
  def condition(predicate: Predicate): Option[Expression] = V2ExpressionUtils.toCatalyst(predicate)

  /** The parts of a condition all of which have to be true. */
  def conjuncts(condition: Expression): Seq[Expression] = splitConjunctivePredicates(condition)

  /** A plan without the names that a statement gives to parts of it. */
  def withoutAliases(plan: LogicalPlan): LogicalPlan = EliminateSubqueryAliases(plan)

  /** Whether a join has parts by which rows of both sides find each other without a look at all pairs. */
  def isEquiJoin(join: Join): Boolean = ExtractEquiJoinKeys.unapply(join).isDefined

  /** The same rows once more in one plan with them, with other columns if these would be the same. */
  def again(plan: LogicalPlan): LogicalPlan =
    DeduplicateRelations(Join(plan, plan, Inner, None, JoinHint.NONE)).children(1)

  /** The different values of some expressions on rows that a plan gives; None if there are more than `limit`. */
  def distinctRows(values: Seq[Expression], of: LogicalPlan, limit: Int): Option[Seq[InternalRow]] =
    rows(Distinct(named(values, of)), limit)

  /** The values of some expressions on all rows that a plan gives; None if there are more than `limit`. */
  def firstRows(values: Seq[Expression], of: LogicalPlan, limit: Int): Option[Seq[InternalRow]] =
    rows(named(values, of), limit)

  private def named(values: Seq[Expression], of: LogicalPlan): LogicalPlan =
    Project(values.zipWithIndex.map { case (value, at) => Alias(value, s"value$at")() }, of)

  private def rows(of: LogicalPlan, limit: Int): Option[Seq[InternalRow]] = {
    val plan = Limit(Literal(limit + 1), of)
    val rows = Dataset.ofRows(SparkSession.active, plan).queryExecution.executedPlan.executeCollect()
    if (rows.length > limit) None else Some(rows.toSeq)
  }

  /** A table that is read with other columns. */
  def withColumns(
      relation: LogicalPlan, columns: Seq[AttributeReference] => Seq[AttributeReference]): LogicalPlan =
    relation match {
      case relation: DataSourceV2Relation => relation.copy(output = columns(relation.output))
      case other => other
    }

  /** A table that a DataFrame has loaded by a name, or a place, with its options. */
  object LoadedFrom {
    def unapply(plan: LogicalPlan): Option[(Table, Identifier, CaseInsensitiveStringMap)] = plan match {
      case relation: DataSourceV2Relation => relation.identifier.map((relation.table, _, relation.options))
      case _ => None
    }
  }

  /** The table that a stream reads, with the options of its reader. */
  object StreamedFrom {
    def unapply(plan: LogicalPlan): Option[(Table, CaseInsensitiveStringMap)] = plan match {
      case stream: StreamingRelationV2 => Some((stream.table, stream.extraOptions))
      case _ => None
    }
  }

  /** The table that a leaf of a plan reads or writes. */
  object TableOf {
    def unapply(plan: LogicalPlan): Option[Table] = plan match {
      case relation: DataSourceV2Relation => Some(relation.table)
      case _ => None
    }
  }
}
