package org.apache.spark.sql.lakelog

/**
 * The jobs of procedures whose Python cannot do all of the work: it prepares one, this runs it, and Python commits with
 * what came of it.
 */
private[lakelog] final class ProcedureJobs(catalog: String, options: Map[String, String]) {

  def run(job: wire.AnyJob): wire.AnyResult = job match {
    case compact: wire.Compact => CompactJob.run(compact, catalog)
    case read: wire.ReadFooters => FooterJob.run(read, Locations.hadoopSettings(options))
    case find: wire.FindSource => SourceJob.run(find, Locations.hadoopSettings(options))
    case compute: wire.ComputeStatistics => StatisticsJob.run(compute, catalog)
    case take: wire.TakeChecksums => ChecksumJob.run(take, Locations.hadoopSettings(options))
  }
}
