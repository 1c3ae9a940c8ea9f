package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, IdentityColumnSpec, TableChange}
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.sql.util.SchemaUtils

/** Columns as Spark's catalogs have them. */
private[lakelog] object Columns {

  def generated(column: Column, sql: String): Column = Column.builderFrom(column).generationExpression(sql).build()

  def identity(column: Column, spec: IdentityColumnSpec): Column =
    Column.builderFrom(column).identityColumnSpec(spec).build()

  /** The text of the default that a column is given; null or empty if it is left without. */
  def newDefault(change: TableChange.UpdateColumnDefaultValue): String =
    Option(change.newCurrentDefault).map(_.getSql).orNull

  def withId(field: StructField, id: String): StructField = field.withId(id)

  /** A type without the ids that fields have in another table. */
  def withoutIds(dataType: DataType): DataType = SchemaUtils.clearFieldIds(dataType)

  def withoutIds(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema, keepIds = false)
}
