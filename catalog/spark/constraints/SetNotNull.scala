package org.apache.spark.sql.lakelog.constraints

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{ResolvedFieldName, ResolvedTable}
import org.apache.spark.sql.catalyst.plans.logical.{AlterColumns, AlterColumnSpec, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{Identifier, TableChange}
import org.apache.spark.sql.lakelog.internals.SchemaCommand
import org.apache.spark.sql.lakelog.internals.plans.ConstraintInternals
import org.apache.spark.sql.lakelog.internals.statements.LakeCommand
import org.apache.spark.sql.lakelog.table.LakeTable

/** ALTER COLUMN … SET NOT NULL of columns that may be NULL, which Spark refuses of every catalog's tables. */
private[lakelog] object SetNotNull {

  /** Takes what Spark would refuse out of the statement; the rest stays Spark's. */
  final case class Resolution(session: SparkSession) extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case alter: AlterColumns if alter.specs.exists(tightens(_).isDefined) =>
        alter.table match {
          case ResolvedTable(plugin, _, table: LakeTable, _) if LakeConstraints.of(plugin).isDefined =>
            val (catalog, ident) = (LakeConstraints.of(plugin).get, table.access.ident)
            val others = alter.specs.map(spec =>
              if (tightens(spec).isDefined) spec.copy(newNullability = None) else spec)
            Command(alter.copy(specs = others), catalog, ident, table, alter.specs.flatMap(tightens))
          case _ => alter
        }
    }
  }

  /** The column that a part of the statement makes NOT NULL, and that was not before. */
  private def tightens(spec: AlterColumnSpec): Option[Seq[String]] = spec.column match {
    case ResolvedFieldName(path, field) if spec.newNullability.contains(false) && field.nullable =>
      Some(path :+ field.name)
    case _ => None
  }

  /** `rest` is not a child: Spark executes a command among the children by itself. */
  final case class Command(
      rest: AlterColumns, catalog: LakeConstraints, ident: Identifier, table: LakeTable, columns: Seq[Seq[String]])
    extends LakeCommand with SchemaCommand {

    override def run(session: SparkSession): Seq[Row] = {
      val tightened = columns.map(path => TableChange.updateColumnNullability(path.toArray, false))
      catalog.requireValues(ident, table, ConstraintInternals.checkedChanges(rest) ++ tightened, columns)
      Nil
    }
  }
}
