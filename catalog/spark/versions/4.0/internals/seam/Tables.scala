package org.apache.spark.sql.lakelog.internals.seam

import java.util.{Map => JMap}

import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, Identifier, Table, TableCapability, TableCatalog, TableCatalogCapability, TableChange}
import org.apache.spark.sql.connector.expressions.{NamedReference, Transform}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.StructType

/** What a table of Spark's interface has since version 4.1. */
private[lakelog] trait NewerTable extends Table {
  override def schema: StructType = CatalogV2Util.v2ColumnsToStructType(columns)
  def id: String = null
  def version: String = null
  def constraints: Array[Constraint] = Array.empty
}

/** A table that is to be made. */
final case class TableInfo(
    columns: Array[Column], partitions: Array[Transform], properties: JMap[String, String],
    constraints: Array[Constraint] = Array.empty) {
  def schema: StructType = CatalogV2Util.v2ColumnsToStructType(columns)
}

/** A table or view in a list. */
final case class TableSummary(identifier: Identifier, tableType: String)

/** A constraint of a table. Spark has no words for any, and holds none. */
sealed trait Constraint {
  def name: String
  def rely: Boolean
}

final case class Check(name: String, predicateSql: String, predicate: Predicate, rely: Boolean) extends Constraint

final case class PrimaryKey(name: String, columns: Array[NamedReference], rely: Boolean) extends Constraint

final case class Unique(name: String, columns: Array[NamedReference], rely: Boolean) extends Constraint

final case class ForeignKey(
    name: String, columns: Array[NamedReference], referencedTable: Identifier,
    referencedColumns: Array[NamedReference], rely: Boolean) extends Constraint

/** Tables of catalogs, as they are made, listed and constrained. */
private[lakelog] object Tables {

  val Managed: String = "MANAGED"
  val OfView: String = "VIEW"

  /** What a catalog says that it can do about constraints. */
  val constraintCapabilities: Set[TableCatalogCapability] = Set.empty

  /** What a table says of writes that change its columns. */
  val evolutionCapabilities: Set[TableCapability] = Set.empty

  /** Whether an UPDATE or MERGE shows which values it gives to columns whose values are made. */
  val showMadeValues: Boolean = false

  val TypeProperty: String = "table_type"

  def summary(ident: Identifier, kind: String): TableSummary = TableSummary(ident, kind)

  def summaries(catalog: TableCatalog, names: Array[String]): Array[TableSummary] =
    catalog.listTables(names).map(summary(_, Managed))

  def info(columns: Array[Column], partitions: Array[Transform], properties: JMap[String, String]): TableInfo =
    TableInfo(columns, partitions, properties)

  def create(catalog: TableCatalog, ident: Identifier, info: TableInfo): Table =
    catalog.createTable(ident, info.columns, info.partitions, info.properties)

  // ---- constraints

  def constraintsOf(table: Table): Array[Constraint] = table match {
    case newer: NewerTable => newer.constraints
    case _ => Array.empty
  }

  def constrained(info: TableInfo, constraints: Array[Constraint]): TableInfo = info.copy(constraints = constraints)

  /** The constraints that changes add, each with the version of the table whose rows were held against it, if any. */
  def added(changes: Seq[TableChange]): Seq[(Constraint, Option[String])] = Nil

  /** The name of the constraint that a change drops, and whether it has to be there. */
  def dropped(change: TableChange): Option[(String, Boolean)] = None

  /** Refuses constraints whose names are taken, or not there to be dropped. */
  def checkConstraints(table: Table, changes: Seq[TableChange]): Unit = ()

  /** A CHECK that has been held against every row. */
  def check(name: String, sql: String, predicate: Option[Predicate], rely: Boolean): Constraint =
    Check(name, sql, predicate.orNull, rely)

  /** Keys, of which it is not known whether they hold. */
  def primaryKey(name: String, columns: Array[NamedReference], rely: Boolean): Constraint =
    PrimaryKey(name, columns, rely)

  def unique(name: String, columns: Array[NamedReference], rely: Boolean): Constraint = Unique(name, columns, rely)

  def foreignKey(
      name: String, columns: Array[NamedReference], table: Identifier, referenced: Array[NamedReference],
      rely: Boolean): Constraint = ForeignKey(name, columns, table, referenced, rely)
}
