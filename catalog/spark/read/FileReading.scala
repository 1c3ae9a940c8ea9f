package org.apache.spark.sql.lakelog

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.types.StructType

/**
 * How the columns `required` of a table's files are read, whichever files these are: those of one version, or what a
 * stream has not seen yet. `predicates` choose row groups.
 */
private[lakelog] final class FileReading(table: LakeTable, required: StructType, predicates: Seq[Predicate]) {

  private val facts = table.facts
  private val schema = table.physical.forRead(required)

  /** The same for all files, and known without planning. */
  def readsColumns: Boolean = SparkInternals.readsColumns(schema)

  def partitions(files: PlannedFiles): Array[InputPartition] =
    files.shapes.toArray.flatMap { case (shape, places) => partitionsOf(files, shape, places) }

  private def partitionsOf(files: PlannedFiles, shape: FileShape, places: Array[Int]): Array[InputPartition] = {
    val (paths, sizes) = (places.map(i => Locations.file(facts.location, files.paths(i))), places.map(files.sizes(_)))
    val footers = places.map(files.footers(_))
    if (shape == FileShape.Own) SparkInternals.inputPartitions(paths, sizes, footers)
    else {
      val schema = table.physical.forRead(required, shape)
      val rows = mutable.Map.empty[String, InternalRow]
      SparkInternals.inputPartitions(paths, sizes, footers, i => Option(files.constants(places(i))).fold(InternalRow.empty)(
        text => rows.getOrElseUpdate(text, Constants.row(text, schema)))).map(new ShapedPartition(shape, _))
    }
  }

  /** Reads `files`, and those that it was asked about before. */
  def factory(files: PlannedFiles): PartitionReaderFactory = synchronized {
    files.shapes.keys.filterNot(_ == FileShape.Own).foreach { shape =>
      shaped.getOrElseUpdate(shape, {
        val schema = table.physical.forRead(required, shape)
        (reader(schema.columns, table.physical.path(_, shape), schema.constants), schema)
      })
    }
    if (shaped.isEmpty) own else new ShapedReaderFactory(own, shaped.toMap)
  }

  private val shaped = mutable.Map.empty[FileShape, (PartitionReaderFactory, ShapedSchema)]

  /** Made once: Spark asks several times, and each one broadcasts Hadoop's configuration. */
  private lazy val own: PartitionReaderFactory = reader(schema, table.physical.path(_), new StructType())

  private def reader(
      columns: StructType, path: Seq[String] => Option[Seq[String]], constants: StructType): PartitionReaderFactory = {
    val filters = predicates.flatMap(Predicates.physical(_, path)).flatMap(SparkInternals.v1Filter(_))
    val configuration = SparkInternals.hadoopConf(facts.location, table.access.hadoopSettings)
    SparkInternals.parquetReader(columns, filters.toArray, configuration, constants)
  }
}
