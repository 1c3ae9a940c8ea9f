package org.apache.spark.sql.lakelog

import java.time.{LocalDateTime, ZoneOffset}
import java.time.format.DateTimeFormatter

import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, QuotingUtils, ResolveDefaultColumns}
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column}
import org.apache.spark.sql.connector.expressions.{FieldReference, NamedReference}
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StringType, StructType, TimestampType}
import org.apache.spark.sql.util.SchemaUtils

/** Columns, schemas and names, in the forms in which Spark wants and writes them. */
private[lakelog] object SchemaInternals {

  /** The columns with their defaults and how their values are made as metadata; a time in EXISTS_DEFAULT means the same in every time zone. */
  def schemaOf(columns: Array[Column]): StructType =
    StructType(CatalogV2Util.v2ColumnsToStructType(columns).zip(columns).map { case (plain, column) =>
      val field = IdentityColumns.defined(plain, column)
      Option(column.defaultValue).flatMap(default => Option(default.getValue)).map(_.value) match {
        case Some(micros: Long) if field.dataType == TimestampType =>
          val metadata = new MetadataBuilder().withMetadata(field.metadata)
            .putString(ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY, timestampSql(micros)).build()
          field.copy(metadata = metadata)
        case _ => field
      }
    })

  /** Spark writes such a literal in the session's time zone, without its name. */
  private def timestampSql(micros: Long): String = {
    val nanos = Math.floorMod(micros, 1000000L).toInt * 1000
    val time = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1000000L), nanos, ZoneOffset.UTC)
    s"TIMESTAMP '${DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS").format(time)}Z'"
  }

  /** The names by which Spark keeps provider, comment, location and so on among a table's properties. */
  def reservedProperties: Set[String] = CatalogV2Util.TABLE_RESERVED_PROPERTIES.toSet

  /** The columns with the ids of fields at any depth, where they have some. */
  def columnsOf(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)

  /** A type without the ids that fields have in another table. */
  def withoutIds(dataType: DataType): DataType = SchemaUtils.clearFieldIds(dataType)

  def withoutCharVarchar(schema: StructType): StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema)

  /** The columns with the lengths of their texts in the types, and no longer beside them. */
  def withCharVarchar(schema: StructType): StructType = StructType(CharVarcharUtils.getRawSchema(schema).map { field =>
    field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
      .remove(CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY).build())
  })

  /** Whether values are texts, at any depth, that may be equal though their bytes are not. */
  def isCollated(dataType: DataType): Boolean = dataType.existsRecursively {
    case text: StringType => !text.isUTF8BinaryCollation
    case _ => false
  }

  def quoted(parts: Seq[String]): String = parts.map(QuotingUtils.quoteIfNeeded).mkString(".")

  def reference(path: Seq[String]): NamedReference = FieldReference(path)
}
