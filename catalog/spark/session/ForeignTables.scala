package org.apache.spark.sql.lakelog.session

import java.util.{Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Column, Identifier, StagedTable, SupportsWrite, Table, TableCapability, TableCatalog}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.seam.{NewerTable, TableInfo, Tables}

/**
 * Tables of other connectors that create by this interface too, in the session catalog beside lakelog's. Spark creates all
 * others, files and Hive's, by commands of its own.
 */
private[lakelog] object ForeignTables {

  def info(columns: Array[Column], partitions: Array[Transform], properties: JMap[String, String]): TableInfo =
    Tables.info(columns, partitions, properties)

  /** The session catalog would leave them out. */
  def refuseConstraints(info: TableInfo): Unit = if (info.constraints != null && info.constraints.nonEmpty) {
    throw Failures.unsupported(
      "The session catalog keeps constraints of lakelog tables only: leave them out, or write USING lakelog.")
  }

  /** STORED AS and ROW FORMAT come as properties, which the session catalog takes for a user's own. */
  def refuseStoredAs(info: TableInfo): Unit =
    if (info.properties.keySet.asScala.exists(_.startsWith("hive."))) throw Failures.unsupported(
      "A table LIKE a lakelog table cannot be stored as a Hive table: write USING and a format, or CREATE TABLE … " +
        "STORED AS … with its columns.")

  /** Creates the table at once, and drops it again when the query fails: the session catalog has no better. */
  def stageCreate(tables: TableCatalog, ident: Identifier, info: TableInfo): StagedTable = {
    refuseConstraints(info)
    Tables.create(tables, ident, info)
    new ForeignStagedTable(tables, ident, tables.loadTable(ident))
  }

  def stageReplace(tables: TableCatalog, ident: Identifier, info: TableInfo): StagedTable = {
    refuseConstraints(info)
    tables.dropTable(ident)
    stageCreate(tables, ident, info)
  }
}

private final class ForeignStagedTable(tables: TableCatalog, ident: Identifier, table: Table)
  extends StagedTable with NewerTable with SupportsWrite {

  override def name: String = table.name
  override def columns: Array[Column] = table.columns
  override def partitioning: Array[Transform] = table.partitioning
  override def properties: JMap[String, String] = table.properties
  override def capabilities: JSet[TableCapability] = table.capabilities
  override def reportDriverMetrics(): Array[CustomTaskMetric] = Array.empty

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = table match {
    case writable: SupportsWrite => writable.newWriteBuilder(info)
    case _ => throw Failures.unsupported(s"$name cannot be written to.")
  }

  override def commitStagedChanges(): Unit = ()

  override def abortStagedChanges(): Unit = tables.dropTable(ident)
}
