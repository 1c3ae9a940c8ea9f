// Written by scripts/wire from lakelog.spark.requests.changes: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * Return the facts of a table for reading its changes between versions or times. Without any of these, they are all
 * changes. With `start_latest`, they begin with the next version, for streams.
 */
private[lakelog] final case class LoadChanges(
    of: NamedObject,
    on: Option[NamedRef] = None,
    startVersion: Option[Long] = None,
    startLatest: Boolean = false,
    endVersion: Option[Long] = None,
    startUs: Option[Long] = None,
    endUs: Option[Long] = None,
    withStart: Boolean = true,
    withEnd: Boolean = true)
  extends Request[ChangesFacts]("load_changes") {
  override def members: Members = of.members ++ List(
    "on" -> putIfAny(on),
    "start_version" -> putIfAny(startVersion),
    "start_latest" -> put(startLatest),
    "end_version" -> putIfAny(endVersion),
    "start_us" -> putIfAny(startUs),
    "end_us" -> putIfAny(endUs),
    "with_start" -> put(withStart),
    "with_end" -> put(withEnd))
  override def answer(json: JObject): ChangesFacts = ChangesFacts.of(json)
}

private[lakelog] object LoadChanges extends Companion[LoadChanges] {
  override def of(json: JObject): LoadChanges = LoadChanges(
    NamedObject.of(json),
    takeIfAny[NamedRef](json, "on"),
    takeIfAny[Long](json, "start_version"),
    takeIfAny[Boolean](json, "start_latest").getOrElse(false),
    takeIfAny[Long](json, "end_version"),
    takeIfAny[Long](json, "start_us"),
    takeIfAny[Long](json, "end_us"),
    takeIfAny[Boolean](json, "with_start").getOrElse(true),
    takeIfAny[Boolean](json, "with_end").getOrElse(true))
}

/** The end of a stream of changes: a version, a time, or none. */
private[lakelog] final case class ChangesEnd(last: Option[Long] = None, lastUs: Option[Long] = None)
  extends Message {
  override def members: Members = List("last" -> putIfAny(last), "last_us" -> putIfAny(lastUs))
}

private[lakelog] object ChangesEnd extends Companion[ChangesEnd] {
  override def of(json: JObject): ChangesEnd = ChangesEnd(
    takeIfAny[Long](json, "last"),
    takeIfAny[Long](json, "last_us"))
}

/** The table as of the last of the versions `first` to `last`. `may_*` say what kinds of changes there may be. */
private[lakelog] final case class ChangesFacts(
    facts: TableFacts,
    first: Long,
    last: Long,
    end: ChangesEnd,
    mayCarry: Boolean,
    mayUpdate: Boolean,
    mayRepeat: Boolean)
  extends Message {
  override def members: Members = facts.members ++ List(
    "first" -> put(first),
    "last" -> put(last),
    "end" -> put(end),
    "may_carry" -> put(mayCarry),
    "may_update" -> put(mayUpdate),
    "may_repeat" -> put(mayRepeat))
}

private[lakelog] object ChangesFacts extends Companion[ChangesFacts] {
  override def of(json: JObject): ChangesFacts = ChangesFacts(
    TableFacts.of(json),
    take[Long](json, "first"),
    take[Long](json, "last"),
    take[ChangesEnd](json, "end"),
    take[Boolean](json, "may_carry"),
    take[Boolean](json, "may_update"),
    take[Boolean](json, "may_repeat"))
}

/** Return the files of loaded changes, as an Arrow stream. */
private[lakelog] final case class PlanChanges(table: LoadedTable, first: Long, last: Long, predicate: Expression)
  extends Request[EmptyAnswer]("plan_changes") {
  override def members: Members = table.members ++ List(
    "first" -> put(first),
    "last" -> put(last),
    "predicate" -> put(predicate))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object PlanChanges extends Companion[PlanChanges] {
  override def of(json: JObject): PlanChanges = PlanChanges(
    LoadedTable.of(json),
    take[Long](json, "first"),
    take[Long](json, "last"),
    take[Expression](json, "predicate"))
}

/** Return the form of the loaded version's columns, which differs from other columns' forms. */
private[lakelog] final case class StreamForm(table: LoadedTable)
  extends Request[ChosenForm]("stream_form") {
  override def members: Members = table.members
  override def answer(json: JObject): ChosenForm = ChosenForm.of(json)
}

private[lakelog] object StreamForm extends Companion[StreamForm] {
  override def of(json: JObject): StreamForm = StreamForm(LoadedTable.of(json))
}

private[lakelog] final case class ChosenForm(form: String)
  extends Message {
  override def members: Members = List("form" -> put(form))
}

private[lakelog] object ChosenForm extends Companion[ChosenForm] {
  override def of(json: JObject): ChosenForm = ChosenForm(take[String](json, "form"))
}

/**
 * A request about a stream that reads a table. `version` is the version that its query has loaded, and `form` the form
 * of its columns. With `changes` it reads changes up to that end, without it only added rows.
 */
private[lakelog] final case class StreamRequest(
    table: LoadedTable,
    name: String,
    form: String,
    skipsChanges: Boolean,
    changes: Option[ChangesEnd] = None,
    skipsExpired: Boolean = false)
  extends Message {
  override def members: Members = table.members ++ List(
    "name" -> put(name),
    "form" -> put(form),
    "skips_changes" -> put(skipsChanges),
    "changes" -> putIfAny(changes),
    "skips_expired" -> put(skipsExpired))
}

private[lakelog] object StreamRequest extends Companion[StreamRequest] {
  override def of(json: JObject): StreamRequest = StreamRequest(
    LoadedTable.of(json),
    take[String](json, "name"),
    take[String](json, "form"),
    take[Boolean](json, "skips_changes"),
    takeIfAny[ChangesEnd](json, "changes"),
    takeIfAny[Boolean](json, "skips_expired").getOrElse(false))
}

/** Return the first position: at a version (or `latest`) or time, else before the present contents. */
private[lakelog] final case class StreamStart(
    stream: StreamRequest,
    startingVersion: Option[Either[Long, String]] = None,
    startingTimestampUs: Option[Long] = None)
  extends Request[OpaquePosition]("stream_start") {
  override def members: Members = stream.members ++ List(
    "starting_version" -> putIfAny(startingVersion),
    "starting_timestamp_us" -> putIfAny(startingTimestampUs))
  override def answer(json: JObject): OpaquePosition = OpaquePosition.of(json)
}

private[lakelog] object StreamStart extends Companion[StreamStart] {
  override def of(json: JObject): StreamStart = StreamStart(
    StreamRequest.of(json),
    takeIfAny[Either[Long, String]](json, "starting_version"),
    takeIfAny[Long](json, "starting_timestamp_us"))
}

/** A position in a stream, as a text that only Python understands. */
private[lakelog] final case class OpaquePosition(position: String)
  extends Message {
  override def members: Members = List("position" -> put(position))
}

private[lakelog] object OpaquePosition extends Companion[OpaquePosition] {
  override def of(json: JObject): OpaquePosition = OpaquePosition(take[String](json, "position"))
}

/** Return the position after all existing versions. */
private[lakelog] final case class StreamHead(stream: StreamRequest)
  extends Request[OpaquePosition]("stream_head") {
  override def members: Members = stream.members
  override def answer(json: JObject): OpaquePosition = OpaquePosition.of(json)
}

private[lakelog] object StreamHead extends Companion[StreamHead] {
  override def of(json: JObject): StreamHead = StreamHead(StreamRequest.of(json))
}

/** The limits of a batch. */
private[lakelog] final case class BatchLimits(
    files: Option[Long] = None,
    bytes: Option[Long] = None,
    rows: Option[Long] = None)
  extends Message {
  override def members: Members = List("files" -> putIfAny(files), "bytes" -> putIfAny(bytes), "rows" -> putIfAny(rows))
}

private[lakelog] object BatchLimits extends Companion[BatchLimits] {
  override def of(json: JObject): BatchLimits = BatchLimits(
    takeIfAny[Long](json, "files"),
    takeIfAny[Long](json, "bytes"),
    takeIfAny[Long](json, "rows"))
}

/** Return the end of the batch that begins at a position. */
private[lakelog] final case class StreamNext(
    stream: StreamRequest,
    position: String,
    limits: BatchLimits,
    until: Option[String] = None)
  extends Request[NextPosition]("stream_next") {
  override def members: Members = stream.members ++ List(
    "position" -> put(position),
    "limits" -> put(limits),
    "until" -> putIfAny(until))
  override def answer(json: JObject): NextPosition = NextPosition.of(json)
}

private[lakelog] object StreamNext extends Companion[StreamNext] {
  override def of(json: JObject): StreamNext = StreamNext(
    StreamRequest.of(json),
    take[String](json, "position"),
    take[BatchLimits](json, "limits"),
    takeIfAny[String](json, "until"))
}

/** `head` is the position after all existing versions. */
private[lakelog] final case class NextPosition(position: String, head: String)
  extends Message {
  override def members: Members = List("position" -> put(position), "head" -> put(head))
}

private[lakelog] object NextPosition extends Companion[NextPosition] {
  override def of(json: JObject): NextPosition = NextPosition(
    take[String](json, "position"),
    take[String](json, "head"))
}

/** Return the files between two positions, as an Arrow stream. */
private[lakelog] final case class StreamFiles(stream: StreamRequest, start: String, end: String)
  extends Request[StreamBatchFiles]("stream_files") {
  override def members: Members = stream.members ++ List("start" -> put(start), "end" -> put(end))
  override def answer(json: JObject): StreamBatchFiles = StreamBatchFiles.of(json)
}

private[lakelog] object StreamFiles extends Companion[StreamFiles] {
  override def of(json: JObject): StreamFiles = StreamFiles(
    StreamRequest.of(json),
    take[String](json, "start"),
    take[String](json, "end"))
}

/** The kinds of changes that a batch may have. Its files come beside the answer. */
private[lakelog] final case class StreamBatchFiles(mayCarry: Boolean, mayUpdate: Boolean, mayRepeat: Boolean)
  extends Message {
  override def members: Members = List(
    "may_carry" -> put(mayCarry),
    "may_update" -> put(mayUpdate),
    "may_repeat" -> put(mayRepeat))
}

private[lakelog] object StreamBatchFiles extends Companion[StreamBatchFiles] {
  override def of(json: JObject): StreamBatchFiles = StreamBatchFiles(
    take[Boolean](json, "may_carry"),
    take[Boolean](json, "may_update"),
    take[Boolean](json, "may_repeat"))
}
