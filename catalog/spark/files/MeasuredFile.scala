package org.apache.spark.sql.lakelog.files

import java.util.zip.CRC32

import org.apache.parquet.io.{OutputFile, PositionOutputStream}

/** A Parquet file that knows its size and its checksums once it is closed, so that it need not be read back. */
private[lakelog] final class MeasuredFile(file: OutputFile) extends OutputFile {

  private var stream: MeasuredStream = _

  def sizeBytes: Long = stream.sizeBytes

  /** CRC-32 of the whole file. */
  def crc: Long = stream.crc

  /** CRC-32 of the file's last bytes, from where its footer begins. */
  def footerCrc: Long = stream.footerCrc

  override def create(blockSizeHint: Long): PositionOutputStream = measured(file.create(blockSizeHint))
  override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream =
    measured(file.createOrOverwrite(blockSizeHint))
  override def supportsBlockSize(): Boolean = file.supportsBlockSize()
  override def defaultBlockSize(): Long = file.defaultBlockSize()
  override def getPath: String = file.getPath

  private def measured(target: PositionOutputStream): PositionOutputStream = {
    stream = new MeasuredStream(target)
    stream
  }
}

/**
 * Computes checksums of a Parquet file while it is written.
 *
 * How long its footer is stands behind it, and footers may be large, so their bytes are not kept until that is known.
 * But the writer of the length has requested the position before the footer and for the one after it. So a checksum begins
 * at each position that is asked for, and the last two of them go on.
 */
private final class MeasuredStream(target: PositionOutputStream) extends PositionOutputStream {
  import MeasuredStream._

  private val whole = new CRC32
  private var written = 0L
  private var earlier = new Tail(0)
  private var latest = earlier
  // As a number whose highest byte came last.
  private var lastEightBytes = 0L
  private var closed = false

  def sizeBytes: Long = written

  def crc: Long = whole.getValue

  def footerCrc: Long = {
    val start = written - TrailerBytes - lastEightBytes.toInt
    val tail = Seq(earlier, latest).find(_.start == start)
    tail.getOrElse(throw new IllegalStateException(s"The position $start, where the footer begins, was never requested."))
      .checksum.getValue
  }

  override def getPos: Long = {
    if (written > latest.start && !closed) {
      earlier = latest
      latest = new Tail(written)
    }
    written
  }

  override def write(byte: Int): Unit = {
    target.write(byte)
    whole.update(byte)
    earlier.checksum.update(byte)
    if (latest ne earlier) latest.checksum.update(byte)
    written += 1
    pass(byte.toByte)
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    target.write(bytes, offset, length)
    whole.update(bytes, offset, length)
    earlier.checksum.update(bytes, offset, length)
    if (latest ne earlier) latest.checksum.update(bytes, offset, length)
    written += length
    var at = offset + math.max(0, length - TrailerBytes)
    while (at < offset + length) {
      pass(bytes(at))
      at += 1
    }
  }

  private def pass(byte: Byte): Unit = lastEightBytes = (lastEightBytes >>> 8) | (byte.toLong << 56)

  override def flush(): Unit = target.flush()

  override def close(): Unit = {
    closed = true
    target.close()
  }
}

private object MeasuredStream {

  /** A footer's length, and the magic number. */
  private val TrailerBytes = 8

  /** The checksum of all bytes from `start` on. */
  private final class Tail(val start: Long) {
    val checksum = new CRC32
  }
}
