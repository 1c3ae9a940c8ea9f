package org.apache.spark.sql.lakelog

import java.io.IOException
import java.nio.{ByteBuffer, ByteOrder}
import java.util.zip.CRC32

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}

/**
 * Compares a data file's size and footer with what its writer recorded in the log.
 *
 * A Parquet footer has no checksum of its own, and decides which rows are read, and as what.
 */
private[lakelog] object Footers {

  /** The footer's length and the magic number. */
  private val TrailerBytes = 8

  /** So much of a file's end is read at once, which holds the footer of most files. */
  private val TailBytes = 64 * 1024

  /**
   * Fails unless the file has that size, and a footer of that CRC-32 where one is known. Costs a look at the file and one
   * small read.
   */
  def check(path: Path, sizeBytes: Long, crc: Option[Long], configuration: Configuration): Unit = {
    val system = path.getFileSystem(configuration)
    val status = system.getFileStatus(path)
    if (status.getLen != sizeBytes) {
      throw altered(path, s"it has ${status.getLen} bytes, and was written with $sizeBytes")
    }
    crc.foreach { written =>
      val file = system.openFile(path).withFileStatus(status).opt(ReadPolicy, "random").build().get()
      val found =
        try crcOf(file, sizeBytes)
        finally file.close()
      if (!found.contains(written)) throw altered(path, "its footer is not the one that was written")
    }
  }

  private val ReadPolicy = "fs.option.openfile.read.policy"

  /** The CRC-32 of a file's last bytes, from where its footer begins; None where that is outside of the file. */
  private def crcOf(file: FSDataInputStream, sizeBytes: Long): Option[Long] = {
    def last(length: Int): Array[Byte] = {
      val bytes = new Array[Byte](length)
      file.readFully(sizeBytes - length, bytes)
      bytes
    }
    val tail = last(math.min(sizeBytes, TailBytes.toLong).toInt)
    if (tail.length < TrailerBytes) None
    else {
      val trailer = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt(tail.length - TrailerBytes)
      val length = trailer.toLong + TrailerBytes
      if (trailer < 0 || length > math.min(sizeBytes, Int.MaxValue.toLong)) None
      else {
        val crc = new CRC32
        crc.update(if (length <= tail.length) tail.takeRight(length.toInt) else last(length.toInt))
        Some(crc.getValue)
      }
    }
  }

  /** Spark adds the file's name, and passes over such files where a user has set that they are to be ignored. */
  private def altered(path: Path, what: String): IOException =
    new IOException(
      s"The data file $path was altered: $what. Restore it from a backup, or delete the rows that were in it.")
}
