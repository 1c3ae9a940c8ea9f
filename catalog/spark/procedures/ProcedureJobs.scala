package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.JobInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable}
import org.apache.spark.sql.lakelog.wire

/**
 * The jobs of procedures whose Python cannot do all of the work: it prepares one, this runs it, and Python commits with
 * what came of it.
 */
private[lakelog] final class ProcedureJobs(
    catalog: String, failures: Failures, table: (Identifier, Channel, wire.TableFacts) => LakeTable,
    options: Map[String, String]) {

  /** `call` is the one that waits for what comes of the job, if one does. */
  def run(job: wire.AnyJob, call: Option[GoingCall] = None): wire.AnyResult = job match {
    case compact: wire.CompactFiles => CompactJob.run(compact, catalog)
    case cluster: wire.ClusterFiles => ClusterJob.run(cluster, catalog)
    case maintain: wire.MaintainTables => MaintainJob.run(maintain, catalog)
    case read: wire.ReadFooters =>
      JobInternals.described(s"lakelog: the footers of the files of ${named(read.source)}") {
        FooterJob.run(read, Locations.hadoopSettings(options))
      }
    case find: wire.FindSource =>
      JobInternals.described(s"lakelog import: the footers of the files of ${named(find.source)}") {
        SourceJob.run(find, Locations.hadoopSettings(options))
      }
    case compute: wire.ComputeStatistics =>
      JobInternals.described(s"lakelog statistics of ${SchemaInternals.quoted(catalog +: compute.table)}") {
        StatisticsJob.run(compute, catalog)
      }
    case take: wire.TakeChecksums =>
      JobInternals.described(s"lakelog fsck: all bytes of ${take.files.length} data files") {
        ChecksumJob.run(take, Locations.hadoopSettings(options))
      }
    case delete: wire.DeleteObjects =>
      JobInternals.described(s"lakelog ${delete.what}: ${delete.objects.length} objects") {
        DeleteJob.run(delete, Locations.hadoopSettings(options))
      }
    case copy: wire.CopyObjects =>
      JobInternals.described(s"lakelog ${copy.what}: ${copy.objects.length} objects") {
        ObjectJob.run(copy, Locations.hadoopSettings(options))
      }
    case bury: wire.BuryVersions =>
      JobInternals.described(
        f"lakelog expire ${bury.what}: versions ${bury.first}%,d to ${bury.until - 1}%,d of ${bury.last}%,d") {
        BuryJob.run(bury, Locations.hadoopSettings(options))
      }
    case count: wire.CountRows =>
      val (table, files) = ofCall(call.get, count.table)
      RowsJob.count(count, table, files)
    case copy: wire.CopyRows =>
      val (table, files) = ofCall(call.get, copy.table)
      RowsJob.copy(copy, table, files)
  }

  /** The table that a job is about, which may have no name any more, and the files. */
  private def ofCall(call: GoingCall, facts: wire.TableFacts): (LakeTable, PlannedFiles) = {
    val ident = Identifier.of(Array.empty, facts.location)
    (table(ident, call.channel, facts),
      call.files(facts.location))
  }

  /** A path is not named: Spark's page of jobs is seen by many, and a URL may have a key in it. */
  private def named(source: wire.ForeignSource): String = source.table.fold("a folder")(SchemaInternals.quoted)
}
