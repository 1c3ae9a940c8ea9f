package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, ReadLimit, SupportsTriggerAvailableNow}
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** How far a stream has come, as Python writes it: the same text for the same position. */
private[lakelog] final case class StreamPosition(override val json: String) extends Offset

/**
 * A table, or its changes, as a source of a streaming query. What a position means, and which files lie between two of
 * them, is Python's business; these files are read as those of a query are.
 */
private[lakelog] final class LakeStream(table: LakeTable, required: StructType, options: StreamOptions)
  extends MicroBatchStream with SupportsTriggerAvailableNow {

  private val facts = table.facts
  private val reading = new FileReading(table, required, Nil)

  /** What distinguishes the columns that the query reads from those that the table may have later. */
  private lazy val form = ask(wire.StreamForm(facts.reference)).form

  /** Spark asks several times where the query begins, and must always get the same answer. */
  private lazy val first = StreamPosition(
    ask(wire.StreamStart(stream, options.startingVersion, options.startingTimestampUs)).position)

  @volatile private var head: Option[Offset] = None
  @volatile private var until: Option[Offset] = None
  @volatile private var planned: Option[(Offset, Offset, wire.StreamBatchFiles, PlannedFiles)] = None

  override def initialOffset(): Offset = first

  override def deserializeOffset(json: String): Offset = StreamPosition(json)

  override def getDefaultReadLimit: ReadLimit = options.limit

  override def prepareForTriggerAvailableNow(): Unit =
    until = Some(StreamPosition(ask(wire.StreamHead(stream)).position))

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val answer = ask(wire.StreamNext(stream, start.json, StreamOptions.limits(limit), until.map(_.json)))
    head = Some(StreamPosition(answer.head))
    StreamPosition(answer.position)
  }

  override def latestOffset(): Offset =
    throw new IllegalStateException("A source with limits is asked for its latest offset within them")

  override def reportLatestOffset(): Offset = head.orNull

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] =
    reading.partitions(between(start, end)._2)

  /** What may be among the changes of a batch. */
  def among(start: Offset, end: Offset): wire.StreamBatchFiles = between(start, end)._1

  /** Spark has planned the batch before it asks. */
  override def createReaderFactory(): PartitionReaderFactory = reading.factory(
    planned.getOrElse(throw new IllegalStateException("Nothing was planned that is to be read"))._4)

  override def commit(end: Offset): Unit = {}

  override def stop(): Unit = {}

  private def between(start: Offset, end: Offset): (wire.StreamBatchFiles, PlannedFiles) = synchronized {
    planned match {
      case Some((`start`, `end`, among, files)) => (among, files)
      case _ =>
        val (among, files) = failing(
          table.access.channel.withFiles(wire.StreamFiles(stream, start.json, end.json), table.facts.location))
        planned = Some((start, end, among, files))
        (among, files)
    }
  }

  private def ask[A](request: wire.Request[A]): A = failing(table.access.channel.ask(request))

  private def failing[T](ask: => T): T = table.access.failures.table(table.access.ident)(ask)

  private def stream: wire.StreamRequest =
    wire.StreamRequest(facts.reference, table.name, form, options.skipsChanges, options.changes, options.skipsExpired)

  override def toString: String = s"lakelog ${table.name}"
}
