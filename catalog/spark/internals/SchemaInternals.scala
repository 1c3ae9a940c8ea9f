package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, QuotingUtils}
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column}
import org.apache.spark.sql.connector.expressions.{FieldReference, NamedReference}
import org.apache.spark.sql.lakelog.internals.seam.Columns
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StringType, StructField, StructType}

/** Columns, schemas and names, in the forms in which Spark wants and writes them. */
private[lakelog] object SchemaInternals {

  /** The columns with their defaults and how their values are made as metadata. */
  def schemaOf(columns: Array[Column]): StructType =
    StructType(CatalogV2Util.v2ColumnsToStructType(columns).zip(columns).map((numbered _).tupled))

  /** The keys of how an identity column's values are made: where they begin, each step, and whether rows may bring some. */
  object Identity {
    val (start, step, explicit) = ("identity.start", "identity.step", "identity.allowExplicitInsert")
  }

  /** The field of a new table with how its values are made, which Spark gives with columns only. */
  private def numbered(field: StructField, column: Column): StructField =
    Option(column.identityColumnSpec).fold(field) { spec =>
      val metadata = new MetadataBuilder().withMetadata(field.metadata).putLong(Identity.start, spec.getStart)
        .putLong(Identity.step, spec.getStep).putBoolean(Identity.explicit, spec.isAllowExplicitInsert)
      field.copy(metadata = metadata.build())
    }

  /** The names by which Spark keeps provider, comment, location and so on among a table's properties. */
  def reservedProperties: Set[String] = CatalogV2Util.TABLE_RESERVED_PROPERTIES.toSet

  /** The columns with the ids of fields at any depth, if they have some. */
  def columnsOf(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)

  /** A type without the ids that fields have in another table. */
  def withoutIds(dataType: DataType): DataType = Columns.withoutIds(dataType)

  def withoutCharVarchar(schema: StructType): StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema)

  /** As `withoutCharVarchar`, without a trace of CHAR: Spark would pad the texts of a condition that it analyses again. */
  def asTexts(schema: StructType): StructType = withoutLengths(withoutCharVarchar(schema))

  /** The columns with the lengths of their texts in the types, and no longer beside them. */
  def withCharVarchar(schema: StructType): StructType = withoutLengths(CharVarcharUtils.getRawSchema(schema))

  private def withoutLengths(schema: StructType): StructType = StructType(schema.map { field =>
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
