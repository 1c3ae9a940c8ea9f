package org.apache.spark.sql.lakelog

import java.io.{FileNotFoundException, InputStream, OutputStream}
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFileSystem, FileSystem, Path}

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

  private val ChunkBytes = 1024 * 1024

  /** The size and the SHA-256 of an object, "" where it is not there. */
  def copy(work: ObjectWork, configuration: Configuration): (Long, String) = {
    val source = new Path(work.source)
    try {
      val from = system(source, configuration).open(source)
      try {
        work.target.fold(hashed(from, None)) { target =>
          val place = new Path(target)
          val files = system(place, configuration)
          val out = files.create(place, true)
          try {
            val done = hashed(from, Some(out))
            // What is noted as copied has to outlive the machine, and is on no disk yet; a bucket has it when it is closed.
            if (files.getUri.getScheme == "file") out.hsync()
            done
          } finally out.close()
        }
      } finally from.close()
    } catch { case _: FileNotFoundException => (0L, "") }
  }

  private def hashed(from: InputStream, to: Option[OutputStream]): (Long, String) = {
    val (hash, chunk) = (MessageDigest.getInstance("SHA-256"), new Array[Byte](ChunkBytes))
    val size = Iterator.continually(from.read(chunk)).takeWhile(_ >= 0).map { count =>
      hash.update(chunk, 0, count)
      to.foreach(_.write(chunk, 0, count))
      count.toLong
    }.sum
    (size, hash.digest().map(byte => f"$byte%02x").mkString)
  }

  /** Hadoop's own checksums of local files would stand beside these, and are of no use to other readers. */
  def system(place: Path, configuration: Configuration): FileSystem = place.getFileSystem(configuration) match {
    case checked: ChecksumFileSystem => checked.getRawFileSystem
    case other => other
  }
}
