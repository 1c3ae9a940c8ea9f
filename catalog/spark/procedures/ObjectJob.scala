package org.apache.spark.sql.lakelog.procedures

import java.io.{FileNotFoundException, IOException, InputStream, OutputStream}
import java.nio.channels.{Channels, FileChannel}
import java.nio.file.{Files, NoSuchFileException, Paths, StandardCopyOption, StandardOpenOption}
import java.security.MessageDigest
import java.util.UUID

import scala.annotation.tailrec

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFileSystem, FileSystem, Path}

import org.apache.spark.sql.lakelog.files.DataFiles
import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/** An object that is copied, or only read, and hashed on an executor. */
private[lakelog] final case class ObjectWork(source: String, target: Option[String])

/**
 * Has executors copy objects from one store to another, with the catalog's settings, and hash what they copy. Python says
 * which, and knows what their bytes have to be. A task that fails is tried again as Spark's setting says: an object is
 * written whole each time.
 */
private[lakelog] object ObjectJob {

  /** Tasks are short, so that one that fails repeats little. */
  private val TasksPerCore = 16

  def run(job: wire.CopyObjects, settings: Map[String, String]): wire.ObjectsCopied = {
    val objects = job.objects.map(each => ObjectWork(path(each.source), each.target.map(path)))
    val done = objects.headOption.toSeq.flatMap(first =>
      FooterInternals.onExecutors(objects, new Path(first.source), settings, TasksPerCore)(ObjectCopier.copy))
    wire.ObjectsCopied(job.work, done.map { case (size, sha256) => wire.ObjectCopied(size, sha256) })
  }

  private def path(url: String): String = Locations.file("", url).toString
}

/** Copies an object, on an executor. */
private[lakelog] object ObjectCopier {

  /** What a crash leaves behind under such a name is in no listing of Python's, and vacuum deletes it. */
  private val Temporary = ".lakelog-tmp-"

  private val Attempts = 3

  /** The size and the SHA-256 of an object, "" if it is not there. */
  def copy(work: ObjectWork, configuration: Configuration): (Long, String) = copy(work, configuration, Attempts)

  @tailrec
  private def copy(work: ObjectWork, configuration: Configuration, attempts: Int): (Long, String) =
    copied(work, configuration) match {
      case Some(done) => done
      case None if attempts > 1 => copy(work, configuration, attempts - 1)
      case None => throw new IOException(
          s"What was written for ${work.target.getOrElse("")} was deleted $Attempts times before it had its name.")
    }

  /** None if a vacuum took what was written for that of a dead process. */
  private def copied(work: ObjectWork, configuration: Configuration): Option[(Long, String)] = {
    val source = new Path(work.source)
    try {
      val from = system(source, configuration).open(source)
      try work.target match {
          case None => Some(hashed(from, None))
          case Some(target) =>
            val place = new Path(target)
            if (place.toUri.getScheme == "file") toFile(from, place)
            else {
              val out = system(place, configuration).create(place, true)
              try Some(hashed(from, Some(out)))
              finally out.close()
            }
        }
      finally from.close()
    } catch { case _: FileNotFoundException => Some((0L, "")) }
  }

  /**
   * Another attempt at the same may be killed after this one is done: a file is there as a whole, or not at all. What is
   * noted as copied has to outlive the machine, and is on no disk yet; a bucket has it when it is closed.
   */
  def toFile(from: InputStream, place: Path): Option[(Long, String)] = {
    val file = Paths.get(place.toUri.getPath)
    Files.createDirectories(file.getParent)
    val part = file.resolveSibling(s"$Temporary${UUID.randomUUID}")
    try {
      val channel = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
      val done =
        try {
          val done = hashed(from, Some(Channels.newOutputStream(channel)))
          channel.force(true)
          done
        } finally channel.close()
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE)
      DataFiles.sync(place)
      Some(done)
    } catch { case _: NoSuchFileException => None }
    finally Files.deleteIfExists(part)
  }

  private def hashed(from: InputStream, to: Option[OutputStream]): (Long, String) = {
    val hash = MessageDigest.getInstance("SHA-256")
    val size = AllBytes.of(from) { (chunk, count) =>
      hash.update(chunk, 0, count)
      to.foreach(_.write(chunk, 0, count))
    }
    (size, hash.digest().map(byte => f"$byte%02x").mkString)
  }

  /** Hadoop's own checksums of local files would stand beside these, and are of no use to other readers. */
  def system(place: Path, configuration: Configuration): FileSystem = place.getFileSystem(configuration) match {
    case checked: ChecksumFileSystem => checked.getRawFileSystem
    case other => other
  }
}
