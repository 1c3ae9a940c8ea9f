package org.apache.spark.sql.lakelog.bridge

import java.io.{DataInputStream, DataOutputStream, EOFException}

import org.apache.spark.sql.lakelog.wire

/**
 * One message on the pipes between Spark and Python: JSON, and bytes beside it (an Arrow IPC stream, or nothing).
 *
 * On the wire: the length of all that follows, the length of the JSON (both four bytes, big-endian), the number of the
 * request that the message is or is about (eight bytes), the JSON, the bytes. A frame is at most 2 GiB, as a JVM's array
 * is. The thread that needs the JSON parses it: text that cannot be parsed must not affect others that share the pipe.
 * What stands beside an answer may come in parts before it: frames with a mark in place of the JSON.
 */
private[lakelog] final case class Frame(number: Long, text: Array[Byte], body: Array[Byte] = Array.emptyByteArray) {

  /** Whether it comes before the answer, and its bytes are JSON: what the request needs to be retried. */
  def isOfBegin: Boolean = text.isEmpty

  /** Whether its bytes are a part of what stands beside an answer that is still to come. */
  def isPart: Boolean = text.length == 1 && text(0) == Frame.Part
}

private[lakelog] object Frame {

  private val CountedBytes = 12
  private val Part: Byte = '+'

  /** Reads the next frame; None at the end of the stream. One that does not fit into memory becomes an error's answer. */
  def read(in: DataInputStream): Option[Frame] =
    try {
      val length = in.readInt()
      val textLength = in.readInt()
      val number = in.readLong()
      empty(number, textLength, length - CountedBytes - textLength) match {
        case Some(frame) =>
          in.readFully(frame.text)
          in.readFully(frame.body)
          Some(frame)
        case None =>
          in.skipNBytes(length - CountedBytes)
          Some(Frame(number, tooLarge(length)))
      }
    } catch {
      case _: EOFException => None
    }

  /** Writes one frame and flushes; callers take turns. */
  def write(out: DataOutputStream, frame: Frame): Unit = {
    out.writeInt(CountedBytes + frame.text.length + frame.body.length)
    out.writeInt(frame.text.length)
    out.writeLong(frame.number)
    out.write(frame.text)
    out.write(frame.body)
    out.flush()
  }

  private def empty(number: Long, textLength: Int, bodyLength: Int): Option[Frame] =
    try Some(Frame(number, new Array[Byte](textLength), new Array[Byte](bodyLength)))
    catch { case _: OutOfMemoryError => None }

  private def tooLarge(length: Int) = wire.Envelope.failed(wire.FailedRequest(
      "too-large",
      s"What lakelog's Python side answered, $length bytes, does not fit into the memory of Spark's driver: give it more, " +
        "by spark.driver.memory."))
}
