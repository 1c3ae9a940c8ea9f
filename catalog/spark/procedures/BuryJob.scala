package org.apache.spark.sql.lakelog.procedures

import java.io.{ByteArrayInputStream, FileNotFoundException, IOException}
import java.util.concurrent.{Callable, ExecutionException, Executors}

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/** Versions of a log that an executor makes tombstones of. */
private[lakelog] final case class VersionsToBury(log: String, first: Long, until: Long, features: Set[String]) {

  def place(version: Long): Path = new Path(f"$log/$version%020d.json")

  def sidecar(name: String): String = s"$log/sidecars/$name"
}

/**
 * Has executors make tombstones of plain commits, side by side and in any order. Python keeps the order of what depends on
 * what: the version that says that the others are done, intents, and what is not as it should be, it does itself. A task
 * that is run twice, or comes back late, writes the same bytes over the same.
 */
private[lakelog] object BuryJob {

  private val GroupSize = 256L
  private val TasksPerCore = 4

  /** With the threads of each, about the 3,500 puts a second that S3 takes below one prefix. */
  private val TasksMax = 16

  def run(job: wire.BuryVersions, settings: Map[String, String]): wire.BuryResult = {
    val log = Locations.file("", job.log).toString
    val groups = (job.first until job.until by GroupSize).map(first =>
      VersionsToBury(log, first, math.min(first + GroupSize, job.until), job.features.toSet))
    val done = groups.headOption.toSeq.flatMap(group =>
      FooterInternals.onExecutors(groups, group.place(group.first), settings, TasksPerCore, TasksMax)(VersionBurier.bury))
    wire.BuryResult(done.map(_.commits).sum, done.map(_.bytes).sum, done.flatMap(_.left))
  }
}

/** What came of some versions: those `left` are no tombstones. */
private[lakelog] final case class BuriedVersions(commits: Long, bytes: Long, left: Seq[Long])

/** Makes tombstones, on an executor. */
private[lakelog] object VersionBurier {

  private val Threads = 16
  private val Attempts = 3

  def bury(versions: VersionsToBury, configuration: Configuration): BuriedVersions = {
    val files = ObjectCopier.system(versions.place(versions.first), configuration)
    val found = sideBySide(versions.first until versions.until) { version =>
      val data = read(files, versions.place(version), Attempts)
      (version, Tombstones.of(data, version, versions.features))
    }
    val stones = found.collect { case (version, Buries(stone)) => (version, stone) }
    // What a commit without its sidecars is, readers know: one without a tombstone has not expired yet.
    val sidecars = stones.flatMap(_._2.sidecars.map(versions.sidecar))
    if (sidecars.nonEmpty) ObjectDeleter.delete(sidecars, configuration): Unit
    sideBySide(stones) { case (version, stone) => replace(files, versions.place(version), stone.bytes) }: Unit
    BuriedVersions(stones.length.toLong, stones.map(_._2.replaced).sum,
      found.collect { case (version, ForPython) => version })
  }

  private def sideBySide[I, T](each: Seq[I])(work: I => T): Seq[T] = {
    val threads = Executors.newFixedThreadPool(math.max(1, math.min(Threads, each.length)))
    try threads.invokeAll(each.map(one => (() => work(one)): Callable[T]).asJava).asScala.toSeq.map(_.get)
    catch { case failed: ExecutionException => throw failed.getCause }
    finally threads.shutdownNow(): Unit
  }

  /** S3A looks at an object first, and then reads that one alone: another cleaner may have come between the two. */
  private def read(files: FileSystem, place: Path, attempts: Int): Array[Byte] =
    try {
      val in = files.open(place)
      try in.readNBytes(Tombstones.CommitBytesMax + 1)
      finally in.close()
    } catch {
      case _: FileNotFoundException => Array.emptyByteArray
      case _: IOException if attempts > 1 => read(files, place, attempts - 1)
    }

  private def replace(files: FileSystem, place: Path, data: Array[Byte]): Unit =
    if (files.getUri.getScheme == "file") toFile(place, data, Attempts)
    else {
      val out = files.createFile(place).overwrite(true).recursive().opt("fs.s3a.create.performance", true).build()
      try out.write(data)
      catch {
        case broken: Throwable =>
          // To close it would put what was written of it. Some stores cannot abort: then it stays open.
          try out.abort()
          catch { case _: UnsupportedOperationException => }
          throw broken
      }
      out.close()
    }

  /** A vacuum takes what is written for a file by what it takes for a dead process. */
  @tailrec
  private def toFile(place: Path, data: Array[Byte], attempts: Int): Unit =
    if (ObjectCopier.toFile(new ByteArrayInputStream(data), place).isEmpty) {
      if (attempts == 1)
        throw new IOException(s"What was written for $place was deleted $Attempts times before it had its name.")
      toFile(place, data, attempts - 1)
    }
}
