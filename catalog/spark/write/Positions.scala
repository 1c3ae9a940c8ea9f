package org.apache.spark.sql.lakelog.write

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer

import scala.collection.mutable

import org.roaringbitmap.RoaringBitmap

import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.unsafe.types.UTF8String

/** Positions of rows in files, in the form in which a task sends them: a Roaring bitmap of 32 bits for each file. */
private[lakelog] final case class FilePositions(file: String, bitmap: Array[Byte]) {

  def positions: RoaringBitmap = {
    val found = new RoaringBitmap
    found.deserialize(ByteBuffer.wrap(bitmap))
    found
  }
}

/** Collects positions of rows in files. */
private[lakelog] final class Positions {

  private val files = mutable.Map.empty[UTF8String, RoaringBitmap]
  private var lastFile: UTF8String = _
  private var last: RoaringBitmap = _

  /** Whether the row was not there yet. */
  def add(file: UTF8String, position: Long): Boolean = {
    if (position < 0 || position >= Positions.Limit) {
      throw Failures.unsupported(
        s"The row at $position of $file cannot be deleted or rewritten on its own, as positions have 32 bits: rewrite " +
          "the table with smaller files.")
    }
    if (file != lastFile) {
      // Spark uses the memory of a row's text again.
      lastFile = file.clone()
      last = files.getOrElseUpdate(lastFile, new RoaringBitmap)
    }
    last.checkedAdd(position.toInt)
  }

  def toMessage: Array[FilePositions] =
    files.map { case (file, positions) => FilePositions(file.toString, Positions.bytes(positions)) }.toArray
}

private[lakelog] object Positions {

  private val Limit = 1L << 32

  /** The portable form, which Python reads too. */
  def bytes(positions: RoaringBitmap): Array[Byte] = {
    positions.runOptimize()
    val out = new ByteArrayOutputStream(positions.serializedSizeInBytes)
    positions.serialize(new DataOutputStream(out))
    out.toByteArray
  }

  /** What all tasks say together; `twice` is the error if a row is in several of them, if it may be in one only. */
  def united(messages: Seq[FilePositions], twice: Option[String => Throwable]): Map[String, RoaringBitmap] = {
    val files = mutable.Map.empty[String, RoaringBitmap]
    messages.foreach { message =>
      val (all, more) = (files.getOrElseUpdate(message.file, new RoaringBitmap), message.positions)
      twice.filter(_ => RoaringBitmap.intersects(all, more)).foreach { error =>
        throw error(s"Several tasks write the same rows of ${message.file}, which would double them")
      }
      all.or(more)
    }
    files.toMap
  }
}
