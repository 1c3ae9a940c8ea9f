package org.apache.spark.sql.lakelog.internals.statements

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, EliminateSubqueryAliases, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.table.TableToBeFilled

/**
 * Loads the table that a statement writes to before all that the statement reads.
 *
 * Spark gives the table that it loads for a write to all other references of the statement to that name: those of views
 * and DataFrames too, which it compares with the columns that these were made for. A [[TableToBeFilled]] has others. So
 * nothing of a statement is seen by Spark's rules until its target is loaded; the references get the same version of the
 * table as it is read.
 */
private[lakelog] object WriteTargets {

  object Early extends EarlyRewrite {
    override protected val rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
      case statement: InsertIntoStatement => targetFirst(statement, statement.table)
      case statement: V2WriteCommand => targetFirst(statement, statement.table)
      case statement: UpdateTable => targetFirst(statement, statement.table)
      case statement: MergeIntoTable => targetFirst(statement, statement.targetTable)
    }
  }

  /** Parameters that Spark's parser has not replaced, as with `legacy.parameterSubstitution`, Spark has to find in the plan. */
  private def targetFirst(statement: LogicalPlan, target: LogicalPlan): LogicalPlan =
    target.collectFirst {
      case named: UnresolvedRelation
          if LakeNames.isOfLake(named.multipartIdentifier) && !statement.containsPattern(TreePattern.PARAMETER) =>
        TargetFirst(named, statement)
    }.getOrElse(statement)

  object Resolution extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "lakelog.WriteTargets.Resolution"
      override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
        case TargetFirst(target, statement) if !target.isInstanceOf[UnresolvedRelation] =>
          EliminateSubqueryAliases(target) match {
            case relation: DataSourceV2Relation =>
              readElsewhere()
              withTarget(statement, target, relation)
            case _ => statement
          }
      }
    }
  }

  private def withTarget(statement: LogicalPlan, named: LogicalPlan, relation: DataSourceV2Relation): LogicalPlan = {
    def in(table: LogicalPlan) = table.transformDown { case _: UnresolvedRelation => named }
    statement match {
      case insert: InsertIntoStatement => insert.copy(table = named)
      case write: V2WriteCommand => write.withNewTable(relation)
      case update: UpdateTable => update.copy(table = in(update.table))
      case merge: MergeIntoTable => merge.copy(targetTable = in(merge.targetTable))
      case other => throw new IllegalStateException(s"A statement has no target: $other")
    }
  }

  /** Replaces tables to be filled in what Spark has loaded for the statement, by whatever keys its version has. */
  private def readElsewhere(): Unit = AnalysisContext.get.productIterator.foreach {
    case loaded: mutable.Map[_, _] => loaded.asInstanceOf[mutable.Map[Any, Any]].mapValuesInPlace {
        case (_, plan: LogicalPlan) => plan.transformDown { case relation: DataSourceV2Relation => asRead(relation) }
        case (_, table: TableToBeFilled) => table.toBeRead
        case (_, other) => other
      }
    case _ =>
  }

  private def asRead(relation: DataSourceV2Relation): DataSourceV2Relation = relation.table match {
    case table: TableToBeFilled =>
      DataSourceV2Relation.create(table.toBeRead, relation.catalog, relation.identifier, relation.options)
    case _ => relation
  }
}

/** A statement no part of which is resolved before the name of its target is. */
private[lakelog] case class TargetFirst(child: LogicalPlan, statement: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
  override protected def withNewChildInternal(newChild: LogicalPlan): TargetFirst = copy(child = newChild)
}
