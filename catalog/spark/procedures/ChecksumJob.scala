package org.apache.spark.sql.lakelog

import java.util.zip.CRC32

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._

/** Has executors read data files from beginning to end, for a deep check. Python knows what their bytes have to be. */
private[lakelog] object ChecksumJob {

  /** `job` has `files`, as urls. The answer leaves out those that could not be read: Python tries these itself. */
  def run(job: JObject, settings: Map[String, String]): JObject = {
    val urls = Json.stringList(Json.get(job, "files").get)
    val read = FooterInternals.onExecutors(urls.map(Locations.file("", _)), settings)(ChecksumReader.read)
    Json.obj("files" -> JArray(urls.zip(read).collect { case (url, Some((size, crc))) =>
      Json.obj("url" -> JString(url), "size" -> JLong(size), "crc" -> JLong(crc))
    }))
  }
}

/** Reads a file on an executor. */
private[lakelog] object ChecksumReader {

  private val ChunkBytes = 1024 * 1024

  /** The size of a file and the CRC-32 of its bytes; None where it cannot be read. */
  def read(path: String, configuration: Configuration): Option[(Long, Long)] =
    try {
      val place = new Path(path)
      val stream = place.getFileSystem(configuration).open(place)
      try {
        val (crc, chunk) = (new CRC32(), new Array[Byte](ChunkBytes))
        val sizes = Iterator.continually(stream.read(chunk)).takeWhile(_ >= 0).map { count =>
          crc.update(chunk, 0, count)
          count.toLong
        }
        Some(sizes.sum -> crc.getValue)
      } finally stream.close()
    } catch {
      case NonFatal(_) => None
    }
}
