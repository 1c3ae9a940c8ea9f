package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** Finds the source of an import: a path as it is, or a table of the session catalog. */
private[lakelog] object SourceJob {

  private val Parquet = "parquet"

  def run(job: wire.FindSource, settings: Map[String, String]): wire.SourceFound = {
    val footers = Option.when(job.footers)(
      FooterJob.run(wire.ReadFooters(job.source, wire.FreeJson.of(new StructType()), Map.empty), settings))
    job.source.table match {
      case None => wire.SourceFound(url = job.source.path.get, footers = footers)
      case Some(name) =>
        val table = FooterInternals.sourceTable(name, job.format)
        if (job.format != Parquet) wire.SourceFound(url = table.url)
        else wire.SourceFound(
          table.url, Some(wire.FreeJson.of(table.columns)), table.partitionedBy, places(name), footers)
    }
  }

  /** The folders of the table's partitions, if the catalog has them. */
  private def places(name: Seq[String]): Option[Seq[wire.PartitionPlace]] = {
    val found = FooterInternals.placesOfTable(name)
    Option.when(found.forall(_._2.isDefined))(found.map { case (place, values) =>
      val texts = values.get.map { case (column, text) => column -> ForeignFiles.partitionValue(text) }
      wire.PartitionPlace(Locations.url(place), texts)
    })
  }
}
