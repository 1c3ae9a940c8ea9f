package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.JObject

/**
 * The jobs of procedures whose Python cannot do all of the work: it prepares one, this runs it, and Python commits with
 * what came of it.
 */
private[lakelog] final class ProcedureJobs(catalog: String, options: Map[String, String]) {

  def run(job: JObject): JObject = Json.string(job, "kind") match {
    case "checksums" => ChecksumJob.run(job, Locations.hadoopSettings(options))
    case "compact" => CompactJob.run(job, catalog)
    case "footers" => FooterJob.run(job, Locations.hadoopSettings(options))
    case "statistics" => StatisticsJob.run(job, catalog)
    case other => throw new IllegalStateException(s"Python requests an unknown job: $other")
  }
}
