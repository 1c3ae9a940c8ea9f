package org.apache.spark.sql.lakelog.write

import java.util.Locale

import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Writes that are to happen once, however often they are asked for: a job gives itself a name, and each of its writes a
 * number that grows.
 */
private[lakelog] object NumberedWrites {

  private val (name, number) = ("txnAppId", "txnVersion")

  /** In lower case. */
  val Names: Set[String] = Set("txnappid", "txnversion")

  /** Whether some of these options make a write one. */
  def areIn(options: Map[String, String]): Boolean = options.keys.exists(key => Names(key.toLowerCase(Locale.ROOT)))

  /** What the write is, as Python takes it; None if it is not numbered. */
  def batch(options: CaseInsensitiveStringMap): Option[wire.StreamBatch] =
    (Option(options.get(name)), Option(options.get(number))) match {
      case (None, None) => None
      case (Some(job), Some(text)) => Some(wire.StreamBatch(job,
            text.trim.toLongOption.getOrElse(
              throw Failures.invalid(s"$number is '$text': give the number of the write, such as a batch's id."))))
      case _ => throw Failures.invalid(
          s"$name is the name of a job, and $number the number of one of its writes: give both of them, or neither.")
    }
}
