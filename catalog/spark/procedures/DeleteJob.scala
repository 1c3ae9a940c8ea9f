package org.apache.spark.sql.lakelog.procedures

import java.io.IOException

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{BulkDelete, Path}

import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/** Has executors delete objects, which Python has found to be needed by nothing: a commit keeps late writers from them. */
private[lakelog] object DeleteJob {

  /** Objects that a task is given at once: of a bucket, one request. */
  private val GroupSize = 1000
  private val TasksPerCore = 4

  /** S3 takes 3,500 deletions a second below one prefix: more tasks than these would only be asked to slow down. */
  private val OfBucketAtOnce = 8

  def run(job: wire.DeleteObjects, settings: Map[String, String]): wire.ObjectsDeleted = {
    val groups = job.objects.map(Locations.file("", _).toString).grouped(GroupSize).toSeq
    groups.headOption.foreach { group =>
      val at = new Path(group.head)
      val tasksMax = if (at.toUri.getScheme == "file") Int.MaxValue else OfBucketAtOnce
      FooterInternals.onExecutors(groups, at, settings, TasksPerCore, tasksMax)(ObjectDeleter.delete)
    }
    wire.ObjectsDeleted(job.work)
  }
}

/** Deletes objects, on an executor: of a bucket as many by one request as `Locations.hadoopSettings` says. */
private[lakelog] object ObjectDeleter {

  private val Attempts = 6
  private val FirstWaitMs = 500L

  /** How many there were. One that is gone already is no error. */
  def delete(group: Seq[String], configuration: Configuration): Int = {
    val paths = group.map(new Path(_))
    val files = ObjectCopier.system(paths.head, configuration)
    if (files.getUri.getScheme == "file") paths.foreach(files.delete(_, false))
    else {
      // Keys of a bucket have no folders: data files and objects of the log go by the same requests.
      val bulk = files.createBulkDelete(new Path(files.getUri.resolve("/")))
      try paths.grouped(bulk.pageSize).foreach(delete(_, bulk, Attempts, FirstWaitMs))
      finally bulk.close()
    }
    group.length
  }

  /** S3A repeats a request that is refused as a whole; what S3 leaves out of one that it took, it only names. */
  @tailrec
  private def delete(page: Seq[Path], bulk: BulkDelete, attempts: Int, waitMs: Long): Unit = {
    val failed = bulk.bulkDelete(page.asJava).asScala.toSeq
    if (failed.nonEmpty && attempts == 1)
      throw new IOException(s"${failed.length} objects were not deleted, ${failed.head.getKey}: ${failed.head.getValue}")
    if (failed.nonEmpty) {
      Thread.sleep(waitMs)
      delete(failed.map(_.getKey), bulk, attempts - 1, waitMs * 2)
    }
  }
}
