package org.apache.spark.sql.lakelog

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Has executors copy objects, whatever stores they are in. Where one server has both, Python has that copy them. */
private[lakelog] object ObjectsJob {

  def run(job: wire.CopyObjects, settings: Map[String, String]): wire.ObjectsCopied = {
    val places = job.objects.map(each => Locations.file("", each.url) -> Locations.file("", each.to).toString)
    val targets = places.map { case (from, to) => from.toString -> to }.toMap
    val sizes = JobInternals.described(job.text) {
      FooterInternals.onExecutors(places.map(_._1), settings)(ObjectCopy.to(targets))
    }
    wire.ObjectsCopied(sizes)
  }
}

private object ObjectCopy {

  /** What an executor does with one object, and how many bytes that has. */
  def to(targets: Map[String, String]): (String, Configuration) => Long = (from, configuration) =>
    DataFiles.copy(new Path(from), new Path(targets(from)), configuration)
}
