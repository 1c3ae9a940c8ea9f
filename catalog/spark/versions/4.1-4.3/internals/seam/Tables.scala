package org.apache.spark.sql.lakelog.internals.seam

import java.util.{Map => JMap}

import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, Identifier, Table, TableCapability, TableCatalog, TableCatalogCapability, TableChange, TableInfo, TableSummary}
import org.apache.spark.sql.connector.catalog.constraints.Constraint
import org.apache.spark.sql.connector.catalog.constraints.Constraint.ValidationStatus
import org.apache.spark.sql.connector.expressions.{NamedReference, Transform}
import org.apache.spark.sql.connector.expressions.filter.Predicate

/** What a table of Spark's interface has since version 4.1. */
private[lakelog] trait NewerTable extends Table

/** Tables of catalogs, as they are made, listed and constrained. */
private[lakelog] object Tables {

  val Managed: String = TableSummary.MANAGED_TABLE_TYPE
  val OfView: String = TableSummary.VIEW_TABLE_TYPE

  /** What a catalog says that it can do about constraints. */
  val constraintCapabilities: Set[TableCatalogCapability] = Set(TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT)

  /** What a table says of writes that change its columns. */
  val evolutionCapabilities: Set[TableCapability] = Set(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION)

  /** Whether an UPDATE or MERGE shows which values it gives to columns whose values are made. */
  val showMadeValues: Boolean = true

  val TypeProperty: String = TableCatalog.PROP_TABLE_TYPE

  def summary(ident: Identifier, kind: String): TableSummary = TableSummary.of(ident, kind)

  def summaries(catalog: TableCatalog, names: Array[String]): Array[TableSummary] = catalog.listTableSummaries(names)

  def info(columns: Array[Column], partitions: Array[Transform], properties: JMap[String, String]): TableInfo =
    new TableInfo.Builder().withColumns(columns).withPartitions(partitions).withProperties(properties).build()

  def create(catalog: TableCatalog, ident: Identifier, info: TableInfo): Table = catalog.createTable(ident, info)

  // ---- constraints

  def constraintsOf(table: Table): Array[Constraint] = table.constraints

  def constrained(info: TableInfo, constraints: Array[Constraint]): TableInfo =
    new TableInfo.Builder().withColumns(info.columns).withPartitions(info.partitions).withProperties(info.properties)
      .withConstraints(constraints).build()

  /** The constraints that changes add, each with the version of the table whose rows were held against it, if any. */
  def added(changes: Seq[TableChange]): Seq[(Constraint, Option[String])] = changes.collect {
    case change: TableChange.AddConstraint => (change.constraint, Option(change.validatedTableVersion))
  }

  /** The name of the constraint that a change drops, and whether it has to be there. */
  def dropped(change: TableChange): Option[(String, Boolean)] = Some(change).collect {
    case drop: TableChange.DropConstraint => (drop.name, !drop.ifExists)
  }

  /** Refuses, by Spark's own errors, constraints whose names are taken, or not there to be dropped. */
  def checkConstraints(table: Table, changes: Seq[TableChange]): Unit = {
    CatalogV2Util.collectConstraintChanges(table, changes)
    ()
  }

  /** A CHECK that has been held against every row. */
  def check(name: String, sql: String, predicate: Option[Predicate], rely: Boolean): Constraint =
    Constraint.check(name).predicateSql(sql).predicate(predicate.orNull).enforced(true).rely(rely)
      .validationStatus(ValidationStatus.VALID).build()

  /** Keys, of which it is not known whether they hold. */
  def primaryKey(name: String, columns: Array[NamedReference], rely: Boolean): Constraint =
    Constraint.primaryKey(name, columns).enforced(false).rely(rely)
      .validationStatus(ValidationStatus.UNVALIDATED).build()

  def unique(name: String, columns: Array[NamedReference], rely: Boolean): Constraint =
    Constraint.unique(name, columns).enforced(false).rely(rely)
      .validationStatus(ValidationStatus.UNVALIDATED).build()

  def foreignKey(
      name: String, columns: Array[NamedReference], table: Identifier, referenced: Array[NamedReference],
      rely: Boolean): Constraint = Constraint.foreignKey(name, columns, table, referenced)
    .enforced(false).rely(rely).validationStatus(ValidationStatus.UNVALIDATED).build()
}
