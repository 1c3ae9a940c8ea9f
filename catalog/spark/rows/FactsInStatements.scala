package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.lakelog.internals.seam.RowChanges
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference, Expression, If, Literal, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeRows, Project, ReplaceData, RowLevelWrite, Union, V2WriteCommand, WriteDelta}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.files.{RowFact, RowIds}
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, Failures, PlanInternals}
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.StructType

/**
 * Statements that name metadata columns of the table whose rows they change.
 *
 * Spark mostly takes all metadata columns for columns of the table then. So an UPDATE could set them, and would keep the
 * version of a row that it changes, as it keeps all columns that it does not set. If names are resolved at once, it forgets
 * to read them instead: see [[FactsRead]]. By the time that a rule sees such a statement as a whole, Spark has made its plan
 * of it already.
 */
private[lakelog] object FactsInStatements extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case replace: ReplaceData => named(replace).fold(replace) { table =>
          val read = new FactsRead(table, replace.query)
          replace.copy(
            condition = read.condition(replace.condition),
            query = updated(table, read.rows),
            // Spark does not find them in the second one of two scans.
            groupFilterCondition =
              if (replace.query.isInstanceOf[Union]) None else replace.groupFilterCondition.map(read.inLook))
        }
      case delta: WriteDelta => named(delta).fold(delta) { table =>
          val read = new FactsRead(table, delta.query)
          RowChanges.lookingFirst(
            delta.copy(condition = read.condition(delta.condition), query = updated(table, read.rows)),
            RowChanges.firstLook(delta).map(read.inLook))
        }
      // A MERGE that only inserts.
      case write: V2WriteCommand => write.table match {
          case PlanInternals.TableOf(table: LakeTable)
              if write.query.exists(plan => plan.missingInput.exists(fact(table, _).isDefined)) =>
            write.withNewQuery(new FactsRead(table, write.query).rows)
          case _ => write
        }
    }
  }

  /** The table, if the statement names metadata columns of it. */
  private def named(write: RowLevelWrite): Option[LakeTable] = write.originalTable match {
    case relation: DataSourceV2Relation => Some(relation.table).collect {
        case table: LakeTable
            if (relation.output ++ hidden(write.condition)).exists(fact(table, _).isDefined) ||
            write.query.exists(plan => plan.missingInput.exists(fact(table, _).isDefined)) => table
      }
    case _ => None
  }

  /** What a condition names of metadata columns; a column that a source has by the same name is none. */
  private def hidden(condition: Expression): Seq[Attribute] =
    condition.references.filter(ColumnInternals.isMetadata).toSeq

  private def fact(table: LakeTable, column: NamedExpression): Option[RowFact] =
    table.physical.metadata.fact(column.name)

  /** The rows to be written, as Spark has planned them. */
  private def updated(table: LakeTable, query: LogicalPlan): LogicalPlan = query match {
    case project: Project => project.copy(projectList = project.projectList.map {
        case column: Alias if fact(table, column).isDefined =>
          column.withNewChildren(Seq(assigned(table, column, column.child))).asInstanceOf[Alias]
        case other => other
      })
    case union: Union => union.withNewChildren(union.children.map(updated(table, _)))
    case other if other.exists(_.isInstanceOf[MergeRows]) => other
    case other => other.withNewChildren(other.children.map(updated(table, _)))
  }

  private def assigned(table: LakeTable, column: Alias, value: Expression): Expression = value match {
    case If(condition, value, old) =>
      If(condition, assigned(table, column, value), old)
    case kept: AttributeReference if kept.name == column.name =>
      if (fact(table, column).contains(RowIds.Version)) Literal(null, kept.dataType) else kept
    case Literal(null, _) if fact(table, column).contains(RowIds.Version) => value
    case _ => refuseToSet(table, column.name)
  }

  /** An UPDATE that writes rows like these has named metadata columns, and this rule has to have seen it. */
  def refuseUnseen(table: LakeTable, rows: StructType): Unit =
    if (!EntranceNames.hasExtension && table.physical.metadata.without(rows).length < rows.length) {
      throw Failures.unsupported(
        s"An UPDATE that names metadata columns of ${table.name} needs lakelog's session extension: start the session with " +
          s"spark.sql.extensions=${EntranceNames.Extensions}.")
    }

  /** What no statement can set. */
  def refuseToSet(table: LakeTable, column: String): Nothing = throw Failures.unsupported(
    s"The metadata column $column of ${table.name} cannot be set: lakelog keeps it.")
}
