package org.apache.spark.sql.lakelog.files

import java.io.{ByteArrayInputStream, InputStream, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.util.zip.CRC32

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, Path}

/**
 * Compares a data file's size and footer with what its writer recorded in the log.
 *
 * A Parquet footer has no checksum of its own, and decides which rows are read, and as what.
 */
private[lakelog] object Footers {

  /**
   * What the store says of the file. Fails unless it has that size, and a footer of that CRC-32 if one is known. Costs
   * a look at the file and one small read.
   */
  def check(path: Path, sizeBytes: Long, crc: Option[Long], configuration: Configuration): FileStatus =
    if (crc.isEmpty) sizeChecked(path, sizeBytes, configuration)
    else checked(path, sizeBytes, crc, configuration)((status, _) => status)

  /** As [[check]], and what `use` finds in the file that was checked. */
  def checked[T](path: Path, sizeBytes: Long, crc: Option[Long], configuration: Configuration)(
      use: (FileStatus, CheckedFile) => T): T = {
    val status = sizeChecked(path, sizeBytes, configuration)
    val file = path.getFileSystem(configuration)
      .openFile(path).withFileStatus(status).opt(ReadPolicy, "random").build().get()
    try {
      val found = new CheckedFile(file, sizeBytes)
      crc.foreach { written =>
        if (!found.footerCrc.contains(written)) throw altered(path, "its footer is not the one that was written")
      }
      use(status, found)
    } finally file.close()
  }

  private def sizeChecked(path: Path, sizeBytes: Long, configuration: Configuration): FileStatus = {
    val status = path.getFileSystem(configuration).getFileStatus(path)
    if (status.getLen != sizeBytes) {
      throw altered(path, s"it has ${status.getLen} bytes, and was written with $sizeBytes")
    }
    status
  }

  private val ReadPolicy = "fs.option.openfile.read.policy"

  /** Spark adds the file's name, and passes over such files if a user has set that they are to be ignored. */
  private def altered(path: Path, what: String): IOException =
    new IOException(
      s"The data file $path was altered: $what. Restore it from a backup, or delete the rows that were in it.")
}

/** A data file that is open, of which the end was read, with the footer of most files. */
private[lakelog] final class CheckedFile(file: FSDataInputStream, val sizeBytes: Long) {
  import CheckedFile._

  private val tail = bytesAt(sizeBytes - math.min(sizeBytes, TailBytes), math.min(sizeBytes, TailBytes).toInt)

  /** The last bytes, from where the footer begins; None if that is outside of the file. */
  private lazy val end: Option[Array[Byte]] =
    if (tail.length < TrailerBytes) None
    else {
      val trailer = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt(tail.length - TrailerBytes)
      val length = trailer.toLong + TrailerBytes
      if (trailer < 0 || length > math.min(sizeBytes, Int.MaxValue.toLong)) None
      else Some(read(sizeBytes - length, length))
    }

  /** The CRC-32 of these bytes. */
  def footerCrc: Option[Long] = end.map { bytes =>
    val crc = new CRC32
    crc.update(bytes)
    crc.getValue
  }

  /** The footer itself; empty if the file has none. */
  def footer: InputStream =
    end.fold(InputStream.nullInputStream)(bytes => new ByteArrayInputStream(bytes, 0, bytes.length - TrailerBytes))

  /** Bytes of the file, fewer if it ends before. What the end has that was read is not read again. */
  def read(offset: Long, length: Long): Array[Byte] = {
    val (from, count) = (sizeBytes - tail.length, math.min(length, sizeBytes - offset).toInt)
    if (offset >= from) java.util.Arrays.copyOfRange(tail, (offset - from).toInt, (offset - from).toInt + count)
    else bytesAt(offset, count)
  }

  private def bytesAt(offset: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    file.readFully(offset, bytes)
    bytes
  }
}

private object CheckedFile {

  /** The footer's length and the magic number. */
  private val TrailerBytes = 8

  /** So much of a file's end is read at once, which holds the footer of most files. */
  private val TailBytes = 64L * 1024
}
