package org.apache.spark.sql.lakelog.rows

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Expression, If, Literal, Not}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeRows, Project, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * Values of a MERGE that are not the same each time that they are computed, such as those of uuid().
 *
 * Spark lets only a few kinds of nodes compute them, and the one that carries out the clauses of a MERGE does not. So
 * they are computed beneath it, once for each row to which their clause may apply.
 */
private[lakelog] object MadeByChance extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case write: V2WriteCommand if isOfLake(write) && write.query.exists(made) =>
        write.withNewQuery(write.query.transform { case rows: MergeRows if made(rows) => computed(rows) })
    }
  }

  private def isOfLake(write: V2WriteCommand): Boolean = write.table match {
    case PlanInternals.TableOf(_: LakeTable | RowLevelOperationTable(_: LakeTable, _)) => true
    case _ => false
  }

  private def made(plan: LogicalPlan): Boolean = plan match {
    case rows: MergeRows => rows.expressions.exists(!_.deterministic)
    case _ => false
  }

  private def computed(rows: MergeRows): MergeRows = {
    val values = mutable.ArrayBuffer.empty[Alias]
    def beneath(isThere: Expression)(instruction: MergeRows.Instruction): MergeRows.Instruction = {
      val applies = And(isThere, instruction.condition)
      def column(value: Expression): Expression =
        if (value.deterministic) value
        else {
          values += Alias(If(applies, value, Literal(null, value.dataType)), "made")()
          values.last.toAttribute
        }
      instruction match {
        case keep: MergeRows.Keep => keep.copy(output = keep.output.map(column))
        case split: MergeRows.Split =>
          split.copy(output = split.output.map(column), otherOutput = split.otherOutput.map(column))
        case other => other
      }
    }
    val (source, target) = (rows.isSourceRowPresent, rows.isTargetRowPresent)
    val changed = rows.copy(
      matchedInstructions = rows.matchedInstructions.map(beneath(And(source, target))),
      notMatchedInstructions = rows.notMatchedInstructions.map(beneath(And(source, Not(target)))),
      notMatchedBySourceInstructions = rows.notMatchedBySourceInstructions.map(beneath(And(Not(source), target))))
    // Others are left out: the source may be stored without them.
    changed.copy(child = Project(rows.child.output.filter(rows.references.contains) ++ values, rows.child))
  }
}
