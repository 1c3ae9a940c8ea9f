package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.sql.{Column, functions}
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.And
import org.apache.spark.sql.catalyst.plans.logical.{AlterTableCommand, Filter, LogicalPlan, View}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, TableChange}
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}
import org.apache.spark.sql.lakelog.internals.{ErrorInternals, PlanInternals, SchemaInternals, SettingInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Check, Checks}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

/** What constraints need of Spark that it does not promise to keep. */
private[lakelog] object ConstraintInternals {

  private def session: SparkSession = SparkSession.active

  /** The rows of a plan, each held against every CHECK of the table, as Spark holds those that it writes. */
  def held(table: LakeTable, plan: LogicalPlan): LogicalPlan = table.constraints.toSeq.collect { case check: Check =>
    val condition = Option(check.predicate).flatMap(PlanInternals.condition)
      .getOrElse(session.sessionState.sqlParser.parseExpression(check.predicateSql))
    val columns = condition.collect { case attribute: UnresolvedAttribute => attribute.sql -> attribute }
    Checks.invariant(condition, columns.distinct, check.name, check.predicateSql)
  }.reduceOption(And(_, _)).fold(plan)(Filter(_, plan))

  /**
   * Refuses, as Spark does for all other constraints, a CHECK of a view. Spark would hold it against the rows that the view
   * shows, under the names that columns have there, and add it to the table below.
   */
  def refuseOfView(): Unit = StatementInternals.running.foreach(_.logical.foreach {
    case view: View =>
      throw ErrorInternals.viewNotTable(view.desc.identifier.nameParts, "ALTER TABLE ... ADD CONSTRAINT")
    case _ =>
  })

  /** What an ALTER TABLE changes that Spark has not looked at yet, if it allows that. */
  def checkedChanges(alter: AlterTableCommand): Seq[TableChange] = {
    val checked = session.sessionState.executePlan(alter, CommandExecutionMode.SKIP)
    checked.assertAnalyzed()
    checked.optimizedPlan.asInstanceOf[AlterTableCommand].changes
  }

  /**
   * Looks for a row that lacks a value at one of `columns`, and returns the table at the version that was looked at.
   *
   * Each execution of a query reads the newest version of its tables. So there is one for all columns, and it says its version.
   */
  def requireValues(
      catalog: CatalogPlugin, ident: Identifier, table: LakeTable, columns: Seq[Seq[String]]): LakeTable = {
    val rows = Dataset.ofRows(session, DataSourceV2Relation.create(table, Some(catalog), Some(ident)))
    val lacking = columns.map { column =>
      val top = table.schema.find(field => SettingInternals.resolver(field.name, column.head)).get
      val lacks = this.lacks(functions.col(SchemaInternals.quoted(Seq(top.name))), top.dataType, column.tail)
      functions.coalesce(lacks, functions.lit(false))
    }
    val missing = rows.filter(lacking.reduce(_ || _)).select(lacking: _*).limit(1)
    missing.collect().foreach { row =>
      val column = columns(columns.indices.find(row.getBoolean).get)
      throw ErrorInternals.checkViolated(s"${SchemaInternals.quoted(column)} IS NOT NULL", table.name)
    }
    missing.queryExecution.optimizedPlan.collectFirst {
      case scan: DataSourceV2ScanRelation => scan.relation.table.asInstanceOf[LakeTable]
    }.getOrElse(table)
  }

  /** Whether a value lacks the part at `path`: a part of what is itself NULL is not lacking. */
  private def lacks(value: Column, dataType: DataType, path: Seq[String]): Column = (dataType, path) match {
    case (_, Seq()) => value.isNull
    case (struct: StructType, name +: rest) =>
      val field = struct.find(field => SettingInternals.resolver(field.name, name)).get
      value.isNotNull && lacks(value.getField(field.name), field.dataType, rest)
    case (ArrayType(element, _), _ +: rest) => functions.exists(value, lacks(_, element, rest))
    case (MapType(key, _, _), "key" +: rest) => functions.exists(functions.map_keys(value), lacks(_, key, rest))
    case (MapType(_, inner, _), _ +: rest) => functions.exists(functions.map_values(value), lacks(_, inner, rest))
    case _ => throw new IllegalStateException(s"$dataType has no part ${path.mkString(".")}")
  }
}
