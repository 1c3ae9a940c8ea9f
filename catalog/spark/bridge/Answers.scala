package org.apache.spark.sql.lakelog.bridge

import scala.collection.mutable

/**
 * The answers to the requests under way, whose numbers they carry. `read` waits for the next one; None is the end of all.
 * Before the answer, what a request needs to be retried may come, and parts of the answer.
 *
 * Threads that wait take turns in reading, and hand over what is not for them: so a thread that waits alone, the usual
 * case, needs no other thread to wake up between the answer and itself.
 */
private[lakelog] final class Answers(read: () => Option[Frame]) {

  private final class Expected(var begun: Option[Array[Byte]] = None) {
    val frames = mutable.Queue.empty[Frame]
  }

  private val expected = mutable.LongMap.empty[Expected]
  private var isRead = false
  private var ended = false

  def haveEnded: Boolean = synchronized(ended)

  def expect(number: Long): Unit = synchronized(expected.update(number, new Expected))

  def forget(number: Long): Unit = synchronized(expected.remove(number))

  /** What the request needs to be retried, if it has begun. */
  def begun(number: Long): Option[Array[Byte]] = synchronized(expected(number).begun)

  /** Waits, through interrupts, for a part of the answer to a request that is expected, or for it; None at the end. */
  def await(number: Long): Option[Frame] = {
    var interrupted = false
    try {
      while (synchronized {
          while (isRead && isMissing(number))
            try wait()
            catch { case _: InterruptedException => interrupted = true }
          isRead ||= isMissing(number)
          isMissing(number)
        }) handOver()
      synchronized(expected(number).frames.removeHeadOption())
    } finally if (interrupted) Thread.currentThread().interrupt()
  }

  private def isMissing(number: Long): Boolean = !ended && expected(number).frames.isEmpty

  private def handOver(): Unit = {
    var frame: Option[Frame] = None
    try frame = read()
    finally synchronized {
        isRead = false
        ended = frame.isEmpty
        // No thread waits any more if the sender failed before it could wait.
        for (read <- frame; request <- expected.get(read.number)) {
          if (read.isOfBegin) request.begun = Some(read.body) else request.frames.enqueue(read)
        }
        notifyAll()
      }
  }
}
