package org.apache.spark.sql.lakelog.rows

import java.util.Locale

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, ExprId, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Assignment, InsertAction, LogicalPlan, MergeAction, MergeIntoTable, SubqueryAlias, UpdateAction, UpdateTable}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.lakelog.table.{LakeTable, MetadataColumns}

/**
 * A MERGE whose conditions and values name metadata columns of its target.
 *
 * Once Spark finds a metadata column in them, it takes all of these for columns of the table, which a MERGE has to set. So here
 * they become columns as any other, which [[FactsRead]] has the statement read.
 */
private[lakelog] object FactsInMerges extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case merge: MergeIntoTable if merge.sourceTable.resolved =>
        PlanInternals.withoutAliases(merge.targetTable) match {
          case PlanInternals.TableOf(table: LakeTable) => plain(merge, table)
          case _ => merge
        }
    }
  }

  private def plain(merge: MergeIntoTable, table: LakeTable): LogicalPlan = {
    def isFact(column: AttributeReference) = table.physical.metadata.fact(column.name).isDefined
    def set(actions: Seq[MergeAction]): Seq[MergeAction] = actions.map { action =>
      def own(assignments: Seq[Assignment]) = assignments.filter(_.key match {
        case column: AttributeReference => !isFact(column)
        case _ => true
      })
      action match {
        case update: UpdateAction => update.copy(assignments = own(update.assignments))
        case insert: InsertAction => insert.copy(assignments = own(insert.assignments))
        case other => other
      }
    }
    val source = merge.sourceTable.outputSet
    val isWide = merge.targetTable.output.exists { case column: AttributeReference => isFact(column); case _ => false }
    val narrow =
      if (!isWide) merge
      else merge.copy(
        targetTable = merge.targetTable.resolveOperatorsUp {
          case relation @ PlanInternals.TableOf(_: LakeTable) =>
            PlanInternals.withColumns(relation, _.filterNot(isFact))
        },
        matchedActions = set(merge.matchedActions),
        notMatchedActions = set(merge.notMatchedActions),
        notMatchedBySourceActions = set(merge.notMatchedBySourceActions))
    val plain = mutable.Map.empty[ExprId, Attribute]
    narrow.transformExpressionsUp {
      case column: AttributeReference
          if ColumnInternals.isMetadata(column) && !source.contains(column) && isFact(column) =>
        plain.getOrElseUpdate(column.exprId, ColumnInternals.plain(column))
    }
  }

  /** Refuses to set them, of which Spark takes no notice if names are resolved at once. */
  object Set extends EarlyRewrite {
    override protected val rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
      case update: UpdateTable =>
        refuseToSet(update.table, update.assignments)
        update
      case merge: MergeIntoTable =>
        val actions = merge.matchedActions ++ merge.notMatchedActions ++ merge.notMatchedBySourceActions
        refuseToSet(merge.targetTable, actions.flatMap(_.children.collect { case one: Assignment => one }))
        merge
    }
  }

  private def refuseToSet(target: LogicalPlan, assignments: Seq[Assignment]): Unit = for {
    name <- named(target) if LakeNames.isTable(name)
    keys = assignments.map(_.key).collect(likeFacts).filter(_.nonEmpty)
    if keys.nonEmpty
    table <- Try(PlanInternals.ofTable(SchemaInternals.quoted(name))).toOption
      .flatMap(_.collectFirst { case PlanInternals.TableOf(table: LakeTable) => table })
    key <- keys.find(table.physical.metadata.fact(_).isDefined)
  } FactsInStatements.refuseToSet(table, key)

  private def named(target: LogicalPlan): Option[Seq[String]] = target match {
    case relation: UnresolvedRelation => Some(relation.multipartIdentifier)
    case alias: SubqueryAlias => named(alias.child)
    case _ => None
  }

  private val likeFacts: PartialFunction[Expression, String] = {
    case column: UnresolvedAttribute if isLikeFact(column.nameParts.last) => column.nameParts.last
  }

  private def isLikeFact(name: String): Boolean = {
    val bare = name.toLowerCase(Locale.ROOT).dropWhile(_ == '_')
    name.startsWith("_") && MetadataColumns.all.exists(_.plain.dropWhile(_ == '_') == bare)
  }
}
