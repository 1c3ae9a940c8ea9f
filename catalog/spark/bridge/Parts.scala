package org.apache.spark.sql.lakelog.bridge

/** What stands beside an answer, in parts that are taken as they come, so that nothing holds all of it as it crossed. */
private[lakelog] trait Parts {

  /** What was taken is not needed: the request is sent for the first time, or again as the process has died. */
  def begin(): Unit

  def add(part: Array[Byte]): Unit
}

/** What stands beside an answer in one piece. */
private[lakelog] final class OnePart extends Parts {

  private var taken: Option[Array[Byte]] = None

  override def begin(): Unit = taken = None

  override def add(part: Array[Byte]): Unit = {
    if (taken.isDefined) throw new IllegalStateException("An answer came in several parts, and one was expected")
    taken = Some(part)
  }

  def result(): Array[Byte] = taken.get
}
