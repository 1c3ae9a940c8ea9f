package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JBool, JNull, JObject, JString, JValue}

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, ReadLimit, SupportsTriggerAvailableNow}
import org.apache.spark.sql.types.StructType

/** How far a stream has come, in Python's words, which are the same for the same position. */
private[lakelog] final case class StreamPosition(override val json: String) extends Offset

/**
 * A table, or its changes, as a source of a streaming query. What a position means, and which files lie between two of
 * them, is Python's business; these files are read as those of a query are.
 */
private[lakelog] final class LakeStream(table: LakeTable, required: StructType, options: StreamOptions)
  extends MicroBatchStream with SupportsTriggerAvailableNow {

  private val facts = table.facts
  private val reading = new FileReading(table, required, Nil)

  /** What tells the columns that the query reads from those that the table may have later. */
  private lazy val form = Json.string(call("stream_form", facts.reference), "form")

  /** Spark asks several times where the query begins, and must always be told the same. */
  private lazy val first = position(ask("stream_start", options.start.obj: _*))

  @volatile private var head: Option[Offset] = None
  @volatile private var until: Option[Offset] = None
  @volatile private var planned: Option[(Offset, Offset, PlannedFiles)] = None

  override def initialOffset(): Offset = first

  override def deserializeOffset(json: String): Offset = StreamPosition(json)

  override def getDefaultReadLimit: ReadLimit = options.limit

  override def prepareForTriggerAvailableNow(): Unit = until = Some(position(ask("stream_head")))

  override def latestOffset(start: Offset, limit: ReadLimit): Offset =
    try {
      val answer = ask(
        "stream_next", "position" -> JString(start.json), "limits" -> StreamOptions.toJson(limit),
        "until" -> until.map(end => JString(end.json)).getOrElse(JNull))
      head = Some(StreamPosition(Json.string(answer, "head")))
      val end = position(answer)
      mayHoldBack = options.isCompared && end.json != start.json
      end
    } catch {
      case _: LakelogException if mayHoldBack =>
        // What Spark still compares comes out of a batch without data, before the query stops for the reason at hand.
        mayHoldBack = false
        start
    }

  /** Whether Spark may still have changes of the last batch. */
  @volatile private var mayHoldBack = false

  override def latestOffset(): Offset =
    throw new IllegalStateException("A source with limits is asked for its latest offset within them")

  override def reportLatestOffset(): Offset = head.orNull

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] =
    reading.partitions(filesBetween(start, end))

  /** Spark has planned the batch before it asks. */
  override def createReaderFactory(): PartitionReaderFactory = reading.factory(
    planned.getOrElse(throw new IllegalStateException("Nothing was planned that is to be read"))._3)

  override def commit(end: Offset): Unit = {}

  override def stop(): Unit = {}

  private def filesBetween(start: Offset, end: Offset): PlannedFiles = synchronized {
    planned match {
      case Some((`start`, `end`, files)) => files
      case _ =>
        val files = failing(ArrowInternals.plannedFiles(table.access.channel.ask("stream_files", params(
          Seq("start" -> JString(start.json), "end" -> JString(end.json)))).body, table.facts.location))
        planned = Some((start, end, files))
        files
    }
  }

  private def ask(method: String, more: (String, JValue)*): JObject = call(method, params(more))

  private def call(method: String, params: JObject): JObject = failing(table.access.channel.call(method, params))

  private def failing[T](ask: => T): T = table.access.failures.table(table.access.ident)(ask)

  private def params(more: Seq[(String, JValue)]): JObject = Json.merge(
    facts.reference, Seq(
      "name" -> JString(table.name), "form" -> JString(form), "skips_changes" -> JBool(options.skipsChanges),
      "changes" -> options.changes) ++ more: _*)

  private def position(answer: JObject): Offset = StreamPosition(Json.string(answer, "position"))

  override def toString: String = s"lakelog ${table.name}"
}
