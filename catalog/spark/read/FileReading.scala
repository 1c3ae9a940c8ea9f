package org.apache.spark.sql.lakelog.read

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.files.{BloomCondition, Constants, FileShape, PlannedFiles, ShapedPartition, ShapedSchema}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.internals.files.ReadInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.StructType

/**
 * How the columns `required` of a table's files are read, whichever files these are: those of one version, or what a
 * stream has not seen yet. `predicates` choose row groups, and so do those that are known `later`, by Bloom filters only.
 */
private[lakelog] final class FileReading(
    table: LakeTable, required: StructType, predicates: Seq[Predicate], later: () => Seq[Predicate] = () => Nil) {

  private val facts = table.facts

  /** The same for all files, and known without planning: what is read of files that have deleted rows is most. */
  val readsColumns: Boolean = {
    val most = table.physical.forRead(required, FileShape.Own.copy(hasDeletes = true))
    ReadInternals.readsColumns(StructType(most.columns.fields ++ most.constants.fields))
  }

  def partitions(files: PlannedFiles): Array[InputPartition] = partitions(files, FileReading.splitBytes(files))

  /** Of some of the files that a scan reads, whose parts are as large as those of the others. */
  def partitions(files: PlannedFiles, splitBytes: Long): Array[InputPartition] =
    files.shapes.toArray.flatMap { case (shape, some) => partitionsOf(some, shape, splitBytes) }

  private def partitionsOf(files: PlannedFiles, shape: FileShape, splitBytes: Long): Array[InputPartition] = {
    val schema = table.physical.forRead(required, shape)
    def constants(i: Int) = if (schema.constants.isEmpty) InternalRow.empty else Constants.row(files, i, schema)
    val partitions = ReadInternals.inputPartitions(files, constants, splitBytes)
    if (shape == FileShape.Own) partitions else partitions.map(new ShapedPartition(shape, _))
  }

  /** Reads `files`, and those that it was asked about before. */
  def factory(files: PlannedFiles): PartitionReaderFactory = synchronized {
    val more = later()
    if (more != known) {
      known = more
      readers.clear()
    }
    files.shapes.map(_._1).foreach(shape => readers.getOrElseUpdate(shape, reader(shape)))
    new ShapedReaderFactory(readers.toMap, readsColumns)
  }

  /** Each is made once: Spark asks several times, and each one broadcasts Hadoop's configuration. */
  private val readers = mutable.Map.empty[FileShape, (PartitionReaderFactory, ShapedSchema)]
  private var known: Seq[Predicate] = Nil

  private def reader(shape: FileShape): (PartitionReaderFactory, ShapedSchema) = {
    val schema = table.physical.forRead(required, shape)
    val filters = predicates.flatMap(Predicates.onFiles(_, table.physical.path(_, shape), table.physical.typeOf))
    val configuration = SettingInternals.hadoopConf(facts.location, table.access.hadoopSettings)
    val factory = ReadInternals.parquetReader(
      schema.columns, filters.toArray, configuration, schema.constants, schema.position, wanted(shape))
    (factory, schema)
  }

  /** Files that others wrote may have filters of any column. */
  private def wanted(shape: FileShape): Option[BloomCondition] = {
    def path(column: Seq[String]) =
      if (shape.names.isEmpty && !table.hasBloomFilter(column)) None else table.physical.path(column, shape)
    BloomCondition.of(predicates ++ known, path, table.physical.typeOf)
  }
}

private[lakelog] object FileReading {

  /** How large the parts are at most that files are read in. Of all files of a scan: of few, they would be too small. */
  def splitBytes(files: PlannedFiles): Long = ReadInternals.splitBytes(files)

  /** For files that one task reads, one after the other. */
  val WholeFiles: Long = Long.MaxValue
}
