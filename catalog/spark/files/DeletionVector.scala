package org.apache.spark.sql.lakelog.files

import java.io.IOException
import java.nio.ByteBuffer
import java.util.Base64
import java.util.zip.CRC32

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.roaringbitmap.RoaringBitmap

import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/**
 * Where it stands which rows of a data file are deleted: in `inline`, or in `path` from `offset` on.
 *
 * The vector itself is a Roaring bitmap of 32 bits, in its portable form, of positions in the file.
 */
private[lakelog] final case class DeletionVector(
    rows: Long, rowsOfFile: Long, sizeBytes: Int, crc: Long, inline: Option[Array[Byte]], path: Option[String],
    offset: Long) {

  /**
   * Reads the positions of the deleted rows, on an executor. Fails unless they are those that were written. Costs one
   * ranged read if they do not stand in the log.
   */
  def load(configuration: Configuration): RoaringBitmap = {
    val bytes = inline.getOrElse(read(new Path(path.get), configuration))
    val found = new CRC32
    found.update(bytes)
    if (bytes.length != sizeBytes || found.getValue != crc) throw altered("it is not the one that was written")
    val positions = new RoaringBitmap
    try positions.deserialize(ByteBuffer.wrap(bytes))
    catch { case _: IOException | _: RuntimeException => throw altered("it is no Roaring bitmap") }
    if (positions.getLongCardinality != rows) {
      throw altered(s"it has ${positions.getLongCardinality} positions, and the log says $rows")
    }
    if (!positions.isEmpty && Integer.toUnsignedLong(positions.last) >= rowsOfFile) {
      throw altered(s"it deletes the row at ${Integer.toUnsignedLong(positions.last)} of a file of $rowsOfFile rows")
    }
    positions
  }

  private def read(file: Path, configuration: Configuration): Array[Byte] = {
    val bytes = new Array[Byte](sizeBytes)
    // It is enough that the file has these bytes, which are checked. A store that knows so much need not ask for its size
    // (S3A's analytics stream, its default, asks all the same).
    val in = file.getFileSystem(configuration).openFile(file)
      .opt(DeletionVector.ReadPolicy, "random").optLong(DeletionVector.Length, offset + sizeBytes).build().get()
    try in.readFully(offset, bytes)
    finally in.close()
    bytes
  }

  /** Without a vector it is not known which rows are deleted: then there is no right answer. */
  private def altered(what: String) = new IOException(
    s"A deletion vector in ${path.getOrElse("the log")} was altered: $what. Restore it from a backup, or roll the table " +
      "back to a version before it.")
}

private[lakelog] object DeletionVector {

  private val ReadPolicy = "fs.option.openfile.read.policy"
  private val Length = "fs.option.openfile.length"

  /** What the log says of the deleted rows of a file of the table at `location`, which has so many `live` ones. */
  def parse(json: String, live: Long, location: String): DeletionVector = {
    val known = wire.DeletionVector.parsed(json)
    val path = known.path.map(Locations.file(location, _).toString)
    DeletionVector(
      known.rows, known.rows + live, known.size.toInt, known.crc, known.inline.map(Base64.getDecoder.decode), path,
      if (path.isEmpty) 0L else known.offset.get)
  }
}
