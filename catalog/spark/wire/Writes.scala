// Written by scripts/wire from lakelog.catalog.core.writes and lakelog.spark.requests.writes: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** Delete the rows like `predicate`, which fill whole files. */
private[lakelog] final case class DeleteRows(table: LoadedTable, token: Option[Token] = None, predicate: Expression)
  extends Change[EmptyAnswer]("delete") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token), "predicate" -> put(predicate))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object DeleteRows extends Companion[DeleteRows] {
  override def of(json: JObject): DeleteRows = DeleteRows(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Expression](json, "predicate"))
}

/** Delete all rows. */
private[lakelog] final case class TruncateTable(table: LoadedTable, token: Option[Token] = None)
  extends Change[EmptyAnswer]("truncate") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object TruncateTable extends Companion[TruncateTable] {
  override def of(json: JObject): TruncateTable = TruncateTable(LoadedTable.of(json), takeIfAny[Token](json, "token"))
}

/** Return the id of a write that starts from the loaded version, and the token of its commit. */
private[lakelog] final case class BeginWrite(table: LoadedTable)
  extends Request[BegunWrite]("begin_write") {
  override def members: Members = table.members
  override def answer(json: JObject): BegunWrite = BegunWrite.of(json)
}

private[lakelog] object BeginWrite extends Companion[BeginWrite] {
  override def of(json: JObject): BeginWrite = BeginWrite(LoadedTable.of(json))
}

/** The next value of the identity column of that id. */
private[lakelog] final case class NextValue(column: Long, next: BigInt)
  extends Message {
  override def members: Members = List("column" -> put(column), "next" -> put(next))
}

private[lakelog] object NextValue extends Companion[NextValue] {
  override def of(json: JObject): NextValue = NextValue(take[Long](json, "column"), take[BigInt](json, "next"))
}

/**
 * A write. Its files' names begin with `write`. `version` is the version that it starts from, if not the loaded
 * version.
 */
private[lakelog] final case class BegunWrite(
    write: WriteRef,
    token: Option[Token] = None,
    identities: Seq[NextValue],
    version: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "write" -> put(write),
    "token" -> putOrNull(token),
    "identities" -> put(identities),
    "version" -> putIfAny(version))
}

private[lakelog] object BegunWrite extends Companion[BegunWrite] {
  override def of(json: JObject): BegunWrite = BegunWrite(
    take[WriteRef](json, "write"),
    takeIfAny[Token](json, "token"),
    take[Seq[NextValue]](json, "identities"),
    takeIfAny[Long](json, "version"))
}

/**
 * Return the id of a streaming query's write, which starts from the newest version. Its rows were made to fit an older
 * version, and are written by the columns of the version `written_as`. The newest version must fit both of them.
 */
private[lakelog] final case class BeginBatch(table: LoadedTable, name: String, writtenAs: Long)
  extends Request[BegunWrite]("begin_batch") {
  override def members: Members = table.members ++ List("name" -> put(name), "written_as" -> put(writtenAs))
  override def answer(json: JObject): BegunWrite = BegunWrite.of(json)
}

private[lakelog] object BeginBatch extends Companion[BeginBatch] {
  override def of(json: JObject): BeginBatch = BeginBatch(
    LoadedTable.of(json),
    take[String](json, "name"),
    take[Long](json, "written_as"))
}

/**
 * A batch of a stream. Later batches have higher numbers. A table takes each at most once. With `from_checkpoint`, the
 * numbers are a checkpoint's, which may repeat only its last batch. `after` is the mark that the stream has kept of the
 * batch before.
 */
private[lakelog] final case class StreamBatch(
    stream: String,
    number: Long,
    fromCheckpoint: Boolean = false,
    after: Option[String] = None)
  extends Message {
  override def members: Members = List(
    "stream" -> put(stream),
    "number" -> put(number),
    "from_checkpoint" -> putUnless(fromCheckpoint)(false),
    "after" -> putIfAny(after))
}

private[lakelog] object StreamBatch extends Companion[StreamBatch] {
  override def of(json: JObject): StreamBatch = StreamBatch(
    take[String](json, "stream"),
    take[Long](json, "number"),
    takeIfAny[Boolean](json, "from_checkpoint").getOrElse(false),
    takeIfAny[String](json, "after"))
}

/**
 * Append, or replace the rows that `filter` matches. `deletes` are matching rows in files that match in part, if known.
 * `copies` have the other rows of these files, if the table deletes by copying.
 */
private[lakelog] final case class CommitWrite(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    operation: String,
    files: Seq[DataFile],
    filter: Option[Expression] = None,
    deletes: Option[Seq[DeletedPositions]] = None,
    copies: Option[Seq[DataFile]] = None,
    batch: Option[StreamBatch] = None,
    values: Seq[ValuesTaken] = Nil)
  extends Change[WriteResult]("commit_write") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "write" -> put(write),
    "operation" -> put(operation),
    "files" -> put(files),
    "filter" -> putIfAny(filter),
    "deletes" -> putIfAny(deletes),
    "copies" -> putIfAny(copies),
    "batch" -> putIfAny(batch),
    "values" -> put(values))
  override def answer(json: JObject): WriteResult = WriteResult.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object CommitWrite extends Companion[CommitWrite] {
  override def of(json: JObject): CommitWrite = CommitWrite(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[WriteRef](json, "write"),
    take[String](json, "operation"),
    take[Seq[DataFile]](json, "files"),
    takeIfAny[Expression](json, "filter"),
    takeIfAny[Seq[DeletedPositions]](json, "deletes"),
    takeIfAny[Seq[DataFile]](json, "copies"),
    takeIfAny[StreamBatch](json, "batch"),
    takeIfAny[Seq[ValuesTaken]](json, "values").getOrElse(Nil))
}

/** How many rows a commit has changed, if known. */
private[lakelog] final case class RowsChanged(
    inserted: Option[Long],
    updated: Option[Long],
    deleted: Option[Long],
    copied: Option[Long])
  extends Message {
  override def members: Members = List(
    "inserted" -> putOrNull(inserted),
    "updated" -> putOrNull(updated),
    "deleted" -> putOrNull(deleted),
    "copied" -> putOrNull(copied))
}

private[lakelog] object RowsChanged extends Companion[RowsChanged] {
  override def of(json: JObject): RowsChanged = RowsChanged(
    takeIfAny[Long](json, "inserted"),
    takeIfAny[Long](json, "updated"),
    takeIfAny[Long](json, "deleted"),
    takeIfAny[Long](json, "copied"))
}

/**
 * The cost of a commit: attempts to put versions, repeated decisions, waits for other clients, and requests to the
 * store with their bytes.
 */
private[lakelog] final case class CommitCost(
    attempts: Long,
    rebases: Long,
    waits: Long,
    waitedMs: Long,
    requests: Long,
    bytesRead: Long,
    bytesWritten: Long)
  extends Message {
  override def members: Members = List(
    "attempts" -> put(attempts),
    "rebases" -> put(rebases),
    "waits" -> put(waits),
    "waited_ms" -> put(waitedMs),
    "requests" -> put(requests),
    "bytes_read" -> put(bytesRead),
    "bytes_written" -> put(bytesWritten))
}

private[lakelog] object CommitCost extends Companion[CommitCost] {
  override def of(json: JObject): CommitCost = CommitCost(
    take[Long](json, "attempts"),
    take[Long](json, "rebases"),
    take[Long](json, "waits"),
    take[Long](json, "waited_ms"),
    take[Long](json, "requests"),
    take[Long](json, "bytes_read"),
    take[Long](json, "bytes_written"))
}

/**
 * Whether the files are part of the table now. If the table had the batch before, they are not. `rows` says how many
 * rows have changed. `mark` is the text that a streaming query keeps in its checkpoint, and sends `after` its next
 * batch.
 */
private[lakelog] final case class WriteResult(
    written: Boolean,
    rows: Option[RowsChanged] = None,
    mark: Option[String] = None,
    cost: Option[CommitCost] = None)
  extends Message {
  override def members: Members = List(
    "written" -> put(written),
    "rows" -> putIfAny(rows),
    "mark" -> putIfAny(mark),
    "cost" -> putIfAny(cost))
}

private[lakelog] object WriteResult extends Companion[WriteResult] {
  override def of(json: JObject): WriteResult = WriteResult(
    take[Boolean](json, "written"),
    takeIfAny[RowsChanged](json, "rows"),
    takeIfAny[String](json, "mark"),
    takeIfAny[CommitCost](json, "cost"))
}

/**
 * A delete, update or merge, on the version that it has read. `condition` holds for all rows that it has read. Of the
 * rows in `files`, `inserted` are new, and `updated` replace other rows, if tasks have counted them.
 */
private[lakelog] final case class CommitRows(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    operation: String,
    files: Seq[DataFile],
    removed: Seq[String],
    deletes: Seq[DeletedPositions],
    condition: Option[Expression] = None,
    values: Seq[ValuesTaken] = Nil,
    readsOthers: Boolean = false,
    inserted: Option[Long] = None,
    updated: Option[Long] = None)
  extends Change[CommittedRows]("commit_rows") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "write" -> put(write),
    "operation" -> put(operation),
    "files" -> put(files),
    "removed" -> put(removed),
    "deletes" -> put(deletes),
    "condition" -> putIfAny(condition),
    "values" -> put(values),
    "reads_others" -> put(readsOthers),
    "inserted" -> putIfAny(inserted),
    "updated" -> putIfAny(updated))
  override def answer(json: JObject): CommittedRows = CommittedRows.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object CommitRows extends Companion[CommitRows] {
  override def of(json: JObject): CommitRows = CommitRows(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[WriteRef](json, "write"),
    take[String](json, "operation"),
    take[Seq[DataFile]](json, "files"),
    take[Seq[String]](json, "removed"),
    take[Seq[DeletedPositions]](json, "deletes"),
    takeIfAny[Expression](json, "condition"),
    takeIfAny[Seq[ValuesTaken]](json, "values").getOrElse(Nil),
    takeIfAny[Boolean](json, "reads_others").getOrElse(false),
    takeIfAny[Long](json, "inserted"),
    takeIfAny[Long](json, "updated"))
}

/** How many rows have changed, if known. */
private[lakelog] final case class CommittedRows(rows: Option[RowsChanged] = None, cost: Option[CommitCost] = None)
  extends Message {
  override def members: Members = List("rows" -> putIfAny(rows), "cost" -> putIfAny(cost))
}

private[lakelog] object CommittedRows extends Companion[CommittedRows] {
  override def of(json: JObject): CommittedRows = CommittedRows(
    takeIfAny[RowsChanged](json, "rows"),
    takeIfAny[CommitCost](json, "cost"))
}

/** Return the token that identifies retries of a change of that name, place or namespace. */
private[lakelog] final case class MakeToken(
    identifier: Option[Seq[String]] = None,
    location: Option[String] = None,
    namespace: Option[Seq[String]] = None)
  extends Request[Token]("token") {
  override def members: Members = List(
    "identifier" -> putIfAny(identifier),
    "location" -> putIfAny(location),
    "namespace" -> putIfAny(namespace))
  override def answer(json: JObject): Token = Token.of(json)
}

private[lakelog] object MakeToken extends Companion[MakeToken] {
  override def of(json: JObject): MakeToken = MakeToken(
    takeIfAny[Seq[String]](json, "identifier"),
    takeIfAny[String](json, "location"),
    takeIfAny[Seq[String]](json, "namespace"))
}

/**
 * Files shall be of about that size, and have less than that share of deleted rows. If there are `fan_in` small files
 * of about the same size, they are joined. Without `joins`, that is left to a clustering.
 */
private[lakelog] final case class CompactionGoal(
    targetSizeBytes: Long,
    deletedRatio: Double,
    fanIn: Long = 1,
    joins: Boolean = true)
  extends Message {
  override def members: Members = List(
    "target_size_bytes" -> put(targetSizeBytes),
    "deleted_ratio" -> put(deletedRatio),
    "fan_in" -> putUnless(fanIn)(1),
    "joins" -> putUnless(joins)(true))
}

private[lakelog] object CompactionGoal extends Companion[CompactionGoal] {
  override def of(json: JObject): CompactionGoal = CompactionGoal(
    take[Long](json, "target_size_bytes"),
    take[Double](json, "deleted_ratio"),
    takeIfAny[Long](json, "fan_in").getOrElse(1),
    takeIfAny[Boolean](json, "joins").getOrElse(true))
}

/** Return the next groups of files to rewrite, and their files, group after group, as an Arrow stream. */
private[lakelog] final case class PlanCompaction(
    table: LoadedTable,
    goal: CompactionGoal,
    predicate: Option[Expression],
    until: Long,
    limitBytes: Long)
  extends Request[CompactionPlan]("plan_compaction") {
  override def members: Members = table.members ++ List(
    "goal" -> put(goal),
    "predicate" -> putOrNull(predicate),
    "until" -> put(until),
    "limit_bytes" -> put(limitBytes))
  override def answer(json: JObject): CompactionPlan = CompactionPlan.of(json)
}

private[lakelog] object PlanCompaction extends Companion[PlanCompaction] {
  override def of(json: JObject): PlanCompaction = PlanCompaction(
    LoadedTable.of(json),
    take[CompactionGoal](json, "goal"),
    takeIfAny[Expression](json, "predicate"),
    take[Long](json, "until"),
    take[Long](json, "limit_bytes"))
}

/**
 * Files that are rewritten together. If their rows are `spread`, so many tasks rewrite them, and share the table's
 * curve by stretches of `cell` places. No new file has rows on both sides of the curve's place `cut`.
 */
private[lakelog] final case class CompactionGroup(
    files: Long,
    rows: Long,
    sizeBytes: Long,
    deleted: Long,
    tasks: Long,
    spread: Boolean,
    cut: Option[Long] = None,
    cell: Long = 1)
  extends Message {
  override def members: Members = List(
    "files" -> put(files),
    "rows" -> put(rows),
    "size_bytes" -> put(sizeBytes),
    "deleted" -> put(deleted),
    "tasks" -> put(tasks),
    "spread" -> put(spread),
    "cut" -> putIfAny(cut),
    "cell" -> putUnless(cell)(1))
}

private[lakelog] object CompactionGroup extends Companion[CompactionGroup] {
  override def of(json: JObject): CompactionGroup = CompactionGroup(
    take[Long](json, "files"),
    take[Long](json, "rows"),
    take[Long](json, "size_bytes"),
    take[Long](json, "deleted"),
    take[Long](json, "tasks"),
    take[Boolean](json, "spread"),
    takeIfAny[Long](json, "cut"),
    takeIfAny[Long](json, "cell").getOrElse(1))
}

private[lakelog] final case class CompactionPlan(groups: Seq[CompactionGroup])
  extends Message {
  override def members: Members = List("groups" -> put(groups))
}

private[lakelog] object CompactionPlan extends Companion[CompactionPlan] {
  override def of(json: JObject): CompactionPlan = CompactionPlan(take[Seq[CompactionGroup]](json, "groups"))
}

/**
 * Files shall be of about that size, in runs along the table's curve. Files without an order wait until there are
 * `fresh_min` of them. With `full`, all runs are merged. `key` are the ids of the table's clustering columns at the
 * begin.
 */
private[lakelog] final case class ClusteringGoal(
    targetSizeBytes: Long,
    key: Seq[Long],
    freshMin: Long = 1,
    full: Boolean = false)
  extends Message {
  override def members: Members = List(
    "target_size_bytes" -> put(targetSizeBytes),
    "key" -> put(key),
    "fresh_min" -> putUnless(freshMin)(1),
    "full" -> putUnless(full)(false))
}

private[lakelog] object ClusteringGoal extends Companion[ClusteringGoal] {
  override def of(json: JObject): ClusteringGoal = ClusteringGoal(
    take[Long](json, "target_size_bytes"),
    take[Seq[Long]](json, "key"),
    takeIfAny[Long](json, "fresh_min").getOrElse(1),
    takeIfAny[Boolean](json, "full").getOrElse(false))
}

/** Return the next groups of files to put in order, and their files, group after group, as an Arrow stream. */
private[lakelog] final case class PlanClustering(
    table: LoadedTable,
    goal: ClusteringGoal,
    predicate: Option[Expression],
    until: Long,
    limitBytes: Long)
  extends Request[CompactionPlan]("plan_clustering") {
  override def members: Members = table.members ++ List(
    "goal" -> put(goal),
    "predicate" -> putOrNull(predicate),
    "until" -> put(until),
    "limit_bytes" -> put(limitBytes))
  override def answer(json: JObject): CompactionPlan = CompactionPlan.of(json)
}

private[lakelog] object PlanClustering extends Companion[PlanClustering] {
  override def of(json: JObject): PlanClustering = PlanClustering(
    LoadedTable.of(json),
    take[ClusteringGoal](json, "goal"),
    takeIfAny[Expression](json, "predicate"),
    take[Long](json, "until"),
    take[Long](json, "limit_bytes"))
}

/**
 * Return the expected work of a clustering, up to about so many bytes, and the overlap after it. Reads metadata alone.
 */
private[lakelog] final case class ExpectClustering(
    table: LoadedTable,
    goal: ClusteringGoal,
    predicate: Option[Expression],
    limitBytes: Option[Long])
  extends Request[ClusteringExpectation]("expect_clustering") {
  override def members: Members = table.members ++ List(
    "goal" -> put(goal),
    "predicate" -> putOrNull(predicate),
    "limit_bytes" -> putOrNull(limitBytes))
  override def answer(json: JObject): ClusteringExpectation = ClusteringExpectation.of(json)
}

private[lakelog] object ExpectClustering extends Companion[ExpectClustering] {
  override def of(json: JObject): ExpectClustering = ExpectClustering(
    LoadedTable.of(json),
    take[ClusteringGoal](json, "goal"),
    takeIfAny[Expression](json, "predicate"),
    takeIfAny[Long](json, "limit_bytes"))
}

/** The expected reads and writes, and how many files a look-up of a point reads, on average, before and after. */
private[lakelog] final case class ClusteringExpectation(
    readFiles: Long,
    readBytes: Long,
    writtenFiles: Long,
    writtenBytes: Long,
    deletedRows: Long,
    isLeft: Boolean,
    overlapBefore: Double,
    overlapAfter: Double)
  extends Message {
  override def members: Members = List(
    "read_files" -> put(readFiles),
    "read_bytes" -> put(readBytes),
    "written_files" -> put(writtenFiles),
    "written_bytes" -> put(writtenBytes),
    "deleted_rows" -> put(deletedRows),
    "is_left" -> put(isLeft),
    "overlap_before" -> put(overlapBefore),
    "overlap_after" -> put(overlapAfter))
}

private[lakelog] object ClusteringExpectation extends Companion[ClusteringExpectation] {
  override def of(json: JObject): ClusteringExpectation = ClusteringExpectation(
    take[Long](json, "read_files"),
    take[Long](json, "read_bytes"),
    take[Long](json, "written_files"),
    take[Long](json, "written_bytes"),
    take[Long](json, "deleted_rows"),
    take[Boolean](json, "is_left"),
    take[Double](json, "overlap_before"),
    take[Double](json, "overlap_after"))
}

/** A group whose files `removed` are replaced by `files`. */
private[lakelog] final case class RewrittenGroup(removed: Seq[String], files: Seq[DataFile])
  extends Message {
  override def members: Members = List("removed" -> put(removed), "files" -> put(files))
}

private[lakelog] object RewrittenGroup extends Companion[RewrittenGroup] {
  override def of(json: JObject): RewrittenGroup = RewrittenGroup(
    take[Seq[String]](json, "removed"),
    take[Seq[DataFile]](json, "files"))
}

/** Commit groups that were rewritten. */
private[lakelog] final case class CommitCompaction(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    groups: Seq[RewrittenGroup])
  extends Change[LostGroups]("commit_compaction") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "write" -> put(write),
    "groups" -> put(groups))
  override def answer(json: JObject): LostGroups = LostGroups.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object CommitCompaction extends Companion[CommitCompaction] {
  override def of(json: JObject): CommitCompaction = CommitCompaction(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[WriteRef](json, "write"),
    take[Seq[RewrittenGroup]](json, "groups"))
}

/** The groups that were left out because other clients have changed their files. */
private[lakelog] final case class LostGroups(lost: Seq[Long])
  extends Message {
  override def members: Members = List("lost" -> put(lost))
}

private[lakelog] object LostGroups extends Companion[LostGroups] {
  override def of(json: JObject): LostGroups = LostGroups(take[Seq[Long]](json, "lost"))
}
