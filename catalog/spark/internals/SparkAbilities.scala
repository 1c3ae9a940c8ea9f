package org.apache.spark.sql.lakelog.internals

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.TableCapability

/** What this version of Spark can do and an earlier one cannot. It is asked once, and nowhere else. */
private[lakelog] object SparkAbilities {

  /** By what a table asks Spark to compute its generated columns. Spark 4.2 has no such thing. */
  val generatesColumns: Option[TableCapability] =
    TableCapability.values.find(_.name == "GENERATE_COLUMN_VALUES_ON_WRITE")

  /**
   * By what a table allows Spark to read once what several subqueries or aggregates of a statement read of it. Spark 4.2
   * does that for its own files only.
   */
  val mergesScans: Option[TableCapability] = TableCapability.values.find(_.name == "SCAN_MERGING")

  /** Whether it distinguishes the changes of a table from the table. Spark 4.2 knows both by the table's name. */
  val knowsChangesApart: Boolean =
    Try(Class.forName("org.apache.spark.sql.catalyst.analysis.V2ChangelogReference")).isSuccess

  /** Whether it is CREATE VIEW … WITH METRICS, a command that Spark 4.2 lacks. */
  def isMetricView(command: LogicalPlan): Boolean = command.getClass.getSimpleName == "CreateMetricViewCommand"
}
