package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, IdentityColumnSpec, TableChange}
import org.apache.spark.sql.types.{DataType, StructField, StructType}

/** Columns as Spark's catalogs have them. Fields have no ids here. */
private[lakelog] object Columns {

  def generated(column: Column, sql: String): Column = Column.create(
    column.name, column.dataType, column.nullable, column.comment, sql, column.metadataInJSON)

  def identity(column: Column, spec: IdentityColumnSpec): Column = Column.create(
    column.name, column.dataType, column.nullable, column.comment, spec, column.metadataInJSON)

  /** The text of the default that a column is given; null or empty if it is left without. */
  def newDefault(change: TableChange.UpdateColumnDefaultValue): String =
    Option(change.newCurrentDefault).map(_.getSql).orNull

  def withId(field: StructField, id: String): StructField = field

  /** A type without the ids that fields have in another table. */
  def withoutIds(dataType: DataType): DataType = dataType

  def withoutIds(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)
}
