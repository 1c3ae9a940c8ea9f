package org.apache.spark.sql.lakelog

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.{MetadataBuilder, StructType}

/**
 * What rows have in columns that their file lacks, where Spark reads rows and not columns.
 *
 * Spark's reader of rows takes those columns for the last ones of all that are read. One that stands before others would be
 * NULL in place of its default, and one behind it would have its default in place of its values. So the reader learns of
 * no defaults, and they are set here, by what is in the footer of the file.
 */
private[lakelog] final class DefaultsInRows private (rows: StructType, values: Array[Any], anyCase: Boolean)
  extends Serializable {

  /** The rows of a file, by its reader. */
  def set(
      path: Path, configuration: Configuration, reader: PartitionReader[InternalRow]): PartitionReader[InternalRow] = {
    val there = columnsOf(path, configuration)
    val missing = values.indices.filter(i => values(i) != null && !there(spelled(rows(i).name))).toSet
    if (missing.isEmpty) reader
    else {
      val project = UnsafeProjection.create(rows.indices.map { i =>
        if (missing(i)) Literal(values(i), rows(i).dataType) else BoundReference(i, rows(i).dataType, nullable = true)
      })
      new Mapped[InternalRow](reader, project(_))
    }
  }

  private def columnsOf(path: Path, configuration: Configuration): Set[String] = {
    val file = FooterReader.opened(HadoopInputFile.fromPath(path, configuration))
    try file.getFileMetaData.getSchema.getFields.asScala.map(field => spelled(field.getName)).toSet
    finally file.close()
  }

  private def spelled(name: String): String = if (anyCase) name.toLowerCase(Locale.ROOT) else name
}

private[lakelog] object DefaultsInRows {

  /** Of columns and what is read behind them; None where no column has a default. */
  def of(columns: StructType, behind: StructType): Option[DefaultsInRows] = {
    val values = ResolveDefaultColumns.existenceDefaultValues(columns)
    if (values.forall(_ == null)) None
    else {
      val anyCase = !SettingInternals.conf.caseSensitiveAnalysis
      Some(new DefaultsInRows(StructType(columns.fields ++ behind.fields), values, anyCase))
    }
  }

  /** The columns for a reader that is not to set defaults. */
  def without(columns: StructType): StructType = StructType(columns.map { field =>
    val metadata = new MetadataBuilder().withMetadata(field.metadata)
    field.copy(metadata = metadata.remove(ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY).build())
  })
}
