package org.apache.spark.sql.lakelog.files

import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader

/** Makes something else of what another reader reads. */
private[lakelog] final class Mapped[T](inner: PartitionReader[T], change: T => T) extends PartitionReader[T] {
  override def next(): Boolean = inner.next()
  override def get(): T = change(inner.get())
  override def currentMetricsValues(): Array[CustomTaskMetric] = inner.currentMetricsValues()
  override def close(): Unit = inner.close()
}

/** Reports to Spark what Bloom filters were asked while a task has read its files. */
private[lakelog] final class CountedReader[T](
    inner: PartitionReader[T], counts: BloomCounts) extends PartitionReader[T] {
  override def next(): Boolean = inner.next()
  override def get(): T = inner.get()
  override def currentMetricsValues(): Array[CustomTaskMetric] = inner.currentMetricsValues() ++ Seq(
    CountMetric.value(new RowGroupsAsked, counts.asked), CountMetric.value(new RowGroupsLeftOut, counts.leftOut))
  override def close(): Unit = inner.close()
}

private[lakelog] class RowGroupsAsked
  extends CountMetric("lakelogRowGroupsAsked", "row groups looked up in Bloom filters")

private[lakelog] class RowGroupsLeftOut
  extends CountMetric("lakelogRowGroupsLeftOut", "row groups left out by Bloom filters")

/** A file, or a part of one, that has none of the rows that are wanted. */
private[lakelog] final class NothingToRead[T] extends PartitionReader[T] {
  override def next(): Boolean = false
  override def get(): T = throw new NoSuchElementException("There is no row")
  override def close(): Unit = {}
}
