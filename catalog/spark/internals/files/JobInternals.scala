package org.apache.spark.sql.lakelog.internals.files

import org.apache.spark.{SparkContext, SparkException, SparkRuntimeException, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, LogicalPlan}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.command.CommandUtils
import org.apache.spark.sql.lakelog.files.ShapedPartition
import org.apache.spark.sql.types.StructType

/** lakelog's own jobs over rows as Spark has them, started on the driver. */
private[lakelog] object JobInternals {

  private def session: SparkSession = SparkSession.active

  /** Runs jobs with the session's settings; what Spark's page of jobs says of them is `text`. */
  def described[T](text: String)(run: => T): T = SQLExecution.withSQLConfPropagated(session) {
    val context = session.sparkContext
    val before = context.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION)
    context.setJobDescription(text)
    try run
    finally context.setJobDescription(before)
  }

  /** Runs jobs. What a task has refused is an error of its own, and not that of an aborted job. */
  def refusing[T](run: => T): T =
    try run
    catch {
      case aborted: SparkException => aborted.getCause match {
          case refused: SparkRuntimeException => throw refused
          case _ => throw aborted
        }
    }

  /** What a task gets in the place of a partition, to be sent in other ways than Spark sends those of a scan. */
  private def asSent(partition: InputPartition): InputPartition = partition match {
    case packed: PackedPartition => packed.files
    case shaped: ShapedPartition => new ShapedPartition(shaped.shape, asSent(shaped.inner))
    case other => other
  }

  /** The rows of some partitions, in tasks of several each. */
  def read(tasks: Seq[Seq[InputPartition]], readers: PartitionReaderFactory): RDD[InternalRow] =
    session.sparkContext.parallelize(tasks.map(_.map(asSent)), tasks.length).mapPartitions(
      PartitionRows.of(_, readers))

  def plan(rows: RDD[InternalRow], schema: StructType): LogicalPlan =
    session.internalCreateDataFrame(rows, schema).queryExecution.analyzed

  def rows(plan: LogicalPlan): RDD[InternalRow] = Dataset.ofRows(session, plan).queryExecution.toRdd

  /** How many rows there are, and of each column what ANALYZE TABLE … FOR COLUMNS counts. */
  def statistics(plan: LogicalPlan, columns: Seq[Attribute]): (Long, Map[Attribute, ColumnStat]) =
    CommandUtils.computeColumnStats(session, plan, columns)
}

private object PartitionRows {
  def of(parts: Iterator[Seq[InputPartition]], readers: PartitionReaderFactory): Iterator[InternalRow] =
    parts.flatten.flatMap(part => new ReaderRows(readers.createReader(part)))
}

/** The rows of a reader, which is closed after the last one, or with its task. */
private final class ReaderRows(reader: PartitionReader[InternalRow]) extends Iterator[InternalRow] {

  private var isClosed = false
  private var isRead = false
  private var hasRow = false

  TaskContext.get().addTaskCompletionListener[Unit](_ => close())

  override def hasNext: Boolean = {
    if (!isRead) {
      hasRow = !isClosed && reader.next()
      isRead = true
      if (!hasRow) close()
    }
    hasRow
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException("There are no more rows")
    isRead = false
    reader.get()
  }

  private def close(): Unit = if (!isClosed) {
    isClosed = true
    reader.close()
  }
}
