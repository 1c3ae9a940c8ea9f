package org.apache.spark.sql.lakelog.columns

import org.apache.spark.sql.connector.catalog.{Column, ColumnDefaultValue}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The values of columns in rows of files that lack them, as Python keeps them. Spark itself writes them as SQL, which
 * means another value under other settings of a session.
 */
private[lakelog] object OldRowValues {

  /** The key of the value in the metadata of a column, in both directions. */
  val Key = "lakelog.exists"

  /** The columns of a new table. */
  def schemaOf(columns: Array[Column]): StructType =
    StructType(SchemaInternals.schemaOf(columns).zip(columns).map { case (field, column) =>
      val metadata = new MetadataBuilder().withMetadata(field.metadata).remove("EXISTS_DEFAULT")
      Option(column.defaultValue).flatMap(of(_, column.dataType)).filter(_.value.isDefined).foreach(value =>
        metadata.putMetadata(Key, Metadata.fromJson(value.asText)))
      field.copy(metadata = metadata.build())
    })

  /** The value of a default of a column of that type; None if lakelog cannot keep it. */
  def of(default: ColumnDefaultValue, columnType: DataType): Option[wire.TypedValue] =
    Option(default.getValue).flatMap(literal =>
      ColumnInternals.valueAs(literal.value, literal.dataType, columnType) match {
        case (null, _) => Some(wire.TypedValue("string", None))
        case (_, _: ArrayType | _: MapType | _: StructType | _: VariantType) => None
        case (text: UTF8String, _) if !text.isValid => None
        case (text: UTF8String, _) => Some(wire.TypedValue("string", Some(Predicates.encode(text, StringType))))
        case (value, dataType) => Some(wire.TypedValue(dataType.typeName, Some(Predicates.encode(value, dataType))))
      })
}
