package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.catalyst.analysis.{Star, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Cast, EvalMode, Literal, UnresolvedNamedLambdaVariable}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.MergeRows
import org.apache.spark.sql.catalyst.util._
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog, V1Table}
import org.apache.spark.sql.connector.expressions.{ClusterByTransform, FieldReference, Transform}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StringType, StructType}

/** What is asked about columns and new tables of those parts of Spark that it does not promise to keep. */
private[lakelog] object ColumnInternals {

  /**
   * The columns of `schema` that the expression reads, each once, by the names that they have there. In a lambda, what is
   * called like a column counts as one, though it may be the lambda's own.
   */
  def columnsIn(sql: String, schema: StructType): Seq[String] = {
    val resolver = SettingInternals.resolver
    val names = CatalystSqlParser.parseExpression(sql).collect {
      case attribute: UnresolvedAttribute => attribute.nameParts.head
      case variable: UnresolvedNamedLambdaVariable => variable.nameParts.head
      case _: Star => throw Failures.unsupported(
          s"A column cannot be generated from $sql, as the meaning of * would change with the columns: name the columns.")
    }
    names.flatMap(name => schema.fieldNames.find(resolver(_, name))).distinct
  }

  /**
   * A value as a column of the type `to` has it, with the type that it has then. Spark 4.0 gives a default in the type in which it
   * was written. Texts stay as they are.
   */
  def valueAs(value: Any, from: DataType, to: DataType): (Any, DataType) =
    if (value == null || from == to || to.isInstanceOf[StringType] || !Cast.canAnsiCast(from, to)) (value, from)
    else {
      val zone = SettingInternals.conf.sessionLocalTimeZone
      (Cast(Literal(value, from), to, Some(zone), EvalMode.ANSI).eval(), to)
    }

  /** Whether Spark takes it for a metadata column. */
  def isMetadata(column: Attribute): Boolean = column.isMetadataCol

  /** A metadata column as one that Spark takes for any other: by its id, too, it would know it. */
  def plain(column: AttributeReference): Attribute = {
    val metadata = new MetadataBuilder().withMetadata(column.metadata).remove(METADATA_COL_ATTR_KEY)
    column.withMetadata(metadata.build()).newInstance()
  }

  /** The names, in small letters, of columns that Spark adds to rows that change, and finds by these names. */
  val addedToRows: Set[String] =
    Set(RowDeltaUtils.OPERATION_COLUMN, "__row_from_source", "__row_from_target", MergeRows.ROW_ID)

  /** What begins the names of further ones. */
  val addedToRowsPrefix: String = RowDeltaUtils.ORIGINAL_ROW_ID_VALUE_PREFIX

  /** As Spark itself shows CLUSTER BY. */
  def clusterBy(columns: Seq[Seq[String]]): Transform = ClusterByTransform(columns.map(FieldReference(_)))

  /**
   * What CREATE TABLE … LIKE takes over of its source's properties, as Spark's own catalogs do: all that are a user's, with
   * comment and provider, but of a view, whose properties are its text and so on, the comment only.
   */
  def inherited(source: Table, properties: Map[String, String]): Map[String, String] = {
    val comment = properties.filter(_._1 == TableCatalog.PROP_COMMENT)
    val provider = properties.filter(_._1 == TableCatalog.PROP_PROVIDER)
    source match {
      case v1: V1Table if v1.catalogTable.tableType == CatalogTableType.VIEW => comment
      case _ => properties -- SchemaInternals.reservedProperties ++ comment ++ provider
    }
  }

  /** In a schema to read, the position of each row in its file, if filters pass over rows too. */
  val RowPosition: String = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME
}
