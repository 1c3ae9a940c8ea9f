package org.apache.spark.sql.lakelog.write

import java.util.{Set => JSet}

import org.apache.spark.sql.lakelog.internals.seam.NewerTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OverwriteByExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{Column, StagedTable, SupportsWrite, TableCapability}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, SupportsTruncate, Write, WriteBuilder}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, Failures, PlanInternals}
import org.apache.spark.sql.lakelog.internals.plans.OverwriteInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire

/**
 * An overwrite by a condition that Spark cannot hand down, or of which Python does not know exactly which rows it matches:
 * `REPLACE WHERE upper(name) LIKE '_A'`. Spark refuses it. Here Spark evaluates it on the rows of all files that may match,
 * before the overwrite commits, and Python takes the places of the rows that match.
 *
 * What Python does not know of the condition may be true of any row that others add meanwhile.
 */
private[lakelog] object OverwriteByRows extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = OverwriteInternals.replaced(plan) {
      // No rows are in one that is made by the statement, which alone knows it.
      case (_: StagedTable, _) => None
      case (table: LakeTable, condition) if areColumns(condition, table) =>
        rowsOf(table, condition).map(new TableToBeCut(table, _))
      case _ => None
    }
  }

  /** Refuses a condition on metadata columns, which Spark finds for it, and then misses among the table's columns. */
  object OfColumns extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "org.apache.spark.sql.lakelog.OverwriteByRows.OfColumns"

      override def apply(plan: LogicalPlan): LogicalPlan = {
        plan.foreach {
          case write: OverwriteByExpression => write.table match {
              case PlanInternals.TableOf(table: LakeTable) => refuseFacts(write.deleteExpr, table)
              case _ =>
            }
          case _ =>
        }
        plan
      }
    }
  }

  private def refuseFacts(condition: Expression, table: LakeTable): Unit =
    condition.references.find(ColumnInternals.isMetadata).foreach { column =>
      throw Failures.unsupported(
        s"An overwrite of ${table.name} finds the rows that it replaces by their columns, and not by the metadata column " +
          s"${column.name}: delete them by a DELETE, and insert the new ones, in a transaction if both have to be one change.")
    }

  /** Which rows a file has, rather than which file it is. */
  private def areColumns(condition: Expression, table: LakeTable): Boolean =
    condition.references.forall(column => table.hasColumn(column.name))

  /** None if Python knows which rows these are. */
  private def rowsOf(table: LakeTable, condition: Expression): Option[RowsToReplace] = {
    val (known, others) = OverwriteInternals.handedDown(condition)
    if (others.isEmpty && table.canOverwrite(known.toArray)) None
    else {
      val byName = condition.transform { case column: Attribute => UnresolvedAttribute(Seq(column.name)) }
      val unknown = others.map(each => wire.Expression.Operation(s"SPARK:${each.sql}", Nil))
      Some(RowsToReplace(Predicates.all(Predicates.toPython(known) +: unknown), Some(byName), known))
    }
  }
}

/** A table of which a write replaces these rows, whatever else Spark says about it. */
private final class TableToBeCut(table: LakeTable, rows: RowsToReplace) extends NewerTable with SupportsWrite {

  override def name: String = table.name

  override def columns: Array[Column] = table.columns

  override def capabilities: JSet[TableCapability] = table.capabilities

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val builder = table.newWriteBuilder(info).asInstanceOf[LakeWriteBuilder].replacing(rows)
    new WriteBuilder with SupportsTruncate {
      override def truncate(): WriteBuilder = this
      override def build(): Write = builder.build()
    }
  }
}
