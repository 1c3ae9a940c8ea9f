package org.apache.spark.sql.lakelog

import java.io.{DataInputStream, DataOutputStream, EOFException}
import java.nio.charset.StandardCharsets.UTF_8

import org.json4s.JsonAST.JObject
import org.json4s.jackson.JsonMethods

/**
 * One message on the pipes between Spark and Python: JSON, and bytes beside it (an Arrow IPC stream, or nothing).
 *
 * On the wire: the length of all that follows, the length of the JSON (both four bytes, big-endian), the JSON, the
 * bytes. A frame is at most 2 GiB, as a JVM's array is.
 */
private[lakelog] final case class Frame(json: JObject, body: Array[Byte] = Array.emptyByteArray)

private[lakelog] object Frame {

  /** Reads the next frame; None where the stream ends between two frames. */
  def read(in: DataInputStream): Option[Frame] =
    try {
      val length = in.readInt()
      val text = new Array[Byte](in.readInt())
      in.readFully(text)
      val body = new Array[Byte](length - 4 - text.length)
      in.readFully(body)
      Some(Frame(parsed(text), body))
    } catch {
      case _: EOFException => None
    }

  /** What bytes say that are JSON. */
  def parsed(text: Array[Byte]): JObject = JsonMethods.parse(new String(text, UTF_8)) match {
    case json: JObject => json
    case other => throw new IllegalStateException(s"A frame from Python is no object: $other")
  }

  /** Writes one frame and flushes; callers take turns. */
  def write(out: DataOutputStream, frame: Frame): Unit = {
    val text = JsonMethods.compact(JsonMethods.render(frame.json)).getBytes(UTF_8)
    out.writeInt(4 + text.length + frame.body.length)
    out.writeInt(text.length)
    out.write(text)
    out.write(frame.body)
    out.flush()
  }
}
