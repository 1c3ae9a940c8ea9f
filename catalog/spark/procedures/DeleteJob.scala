package org.apache.spark.sql.lakelog

import java.io.IOException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Has executors delete objects, which Python has found to be needed by nothing: a commit keeps late writers from them. */
private[lakelog] object DeleteJob {

  /** Objects that a task is given at once. */
  private val GroupSize = 1000
  private val TasksPerCore = 4

  def run(job: wire.DeleteObjects, settings: Map[String, String]): wire.ObjectsDeleted = {
    val groups = job.objects.map(Locations.file("", _).toString).grouped(GroupSize).toSeq
    groups.headOption.foreach(group =>
      FooterInternals.onExecutors(groups, new Path(group.head), settings, TasksPerCore)(ObjectDeleter.delete))
    wire.ObjectsDeleted(job.work)
  }
}

/** Deletes objects, on an executor: of a bucket as many by one request as Hadoop's setting says. */
private[lakelog] object ObjectDeleter {

  /** How many there were. One that is gone already is no error. */
  def delete(group: Seq[String], configuration: Configuration): Int = {
    val paths = group.map(new Path(_))
    val files = ObjectCopier.system(paths.head, configuration)
    if (files.getUri.getScheme == "file") paths.foreach(files.delete(_, false))
    else paths.groupBy(_.getParent).foreach { case (folder, below) =>
      val bulk = files.createBulkDelete(folder)
      try below.grouped(bulk.pageSize).foreach(page => check(bulk.bulkDelete(page.asJava).asScala.toSeq))
      finally bulk.close()
    }
    group.length
  }

  private def check(failed: Seq[java.util.Map.Entry[Path, String]]): Unit = failed.headOption.foreach { first =>
    throw new IOException(s"${failed.length} objects were not deleted, ${first.getKey}: ${first.getValue}")
  }
}
