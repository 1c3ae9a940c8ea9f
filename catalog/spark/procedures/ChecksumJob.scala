package org.apache.spark.sql.lakelog.procedures

import java.util.zip.CRC32

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/** The size of a file and the CRC-32 of its bytes, or that it could not be read. */
private[lakelog] final case class ChecksumLook(size: Long, crc: Long, isRead: Boolean)

/** Has executors read data files from beginning to end, for a deep check. Python knows what their bytes have to be. */
private[lakelog] object ChecksumJob {

  /** Leaves out files that could not be read: Python tries these itself. */
  def run(job: wire.TakeChecksums, settings: Map[String, String]): wire.ChecksumsTaken = {
    val read = FooterInternals.onExecutors(job.files.map(Locations.file("", _)), settings)(ChecksumReader.read)
    wire.ChecksumsTaken(job.files.zip(read).collect {
      case (url, look) if look.isRead =>
        wire.ChecksumTaken(url, look.size, look.crc)
    })
  }
}

/** Reads a file on an executor. */
private[lakelog] object ChecksumReader {

  def read(path: String, configuration: Configuration): ChecksumLook =
    try {
      val place = new Path(path)
      val stream = place.getFileSystem(configuration).open(place)
      try {
        val crc = new CRC32()
        val size = AllBytes.of(stream)(crc.update(_, 0, _))
        ChecksumLook(size, crc.getValue, isRead = true)
      } finally stream.close()
    } catch {
      case NonFatal(_) => ChecksumLook(0L, 0L, isRead = false)
    }
}
