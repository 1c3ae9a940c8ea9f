package org.apache.spark.sql.lakelog

import scala.collection.mutable

/**
 * The answers to the requests under way, whose numbers they carry. `read` waits for the next one; None is the end of all.
 *
 * Those who wait take turns in reading, and hand over what is not for them: so one who waits alone, the usual case, needs
 * no other thread to wake up between the answer and itself.
 */
private[lakelog] final class Answers(read: () => Option[Frame]) {

  private val given = mutable.LongMap.empty[Option[Frame]]
  private var isRead = false
  private var ended = false

  def haveEnded: Boolean = synchronized(ended)

  def expect(number: Long): Unit = synchronized(given.update(number, None))

  def forget(number: Long): Unit = synchronized(given.remove(number))

  /** Waits, through interrupts, for the answer to a request that is expected; None where the end comes first. */
  def await(number: Long): Option[Frame] = {
    var interrupted = false
    try {
      while (synchronized {
        while (isRead && isMissing(number)) try wait() catch { case _: InterruptedException => interrupted = true }
        isRead ||= isMissing(number)
        isMissing(number)
      }) handOver()
      synchronized(given(number))
    } finally if (interrupted) Thread.currentThread().interrupt()
  }

  private def isMissing(number: Long): Boolean = !ended && given(number).isEmpty

  private def handOver(): Unit = {
    var frame: Option[Frame] = None
    try frame = read()
    finally synchronized {
      isRead = false
      ended = frame.isEmpty
      frame.foreach { answer =>
        val number = Json.long(answer.json, "id")
        // Nobody waits any more where the sender failed before it could wait.
        if (given.contains(number)) given.update(number, frame)
      }
      notifyAll()
    }
  }
}
