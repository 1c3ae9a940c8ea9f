// Written by scripts/wire from lakelog.catalog.core.writes and lakelog.spark.requests.writes: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** Delete the rows like `predicate`, which are those of whole files. */
private[lakelog] final case class Delete(table: LoadedTable, token: Option[Token] = None, predicate: Expression)
  extends Change[Done]("delete") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token), "predicate" -> put(predicate))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object Delete extends Companion[Delete] {
  override def of(json: JObject): Delete = Delete(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Expression](json, "predicate"))
}

/** Delete all rows. */
private[lakelog] final case class Truncate(table: LoadedTable, token: Option[Token] = None)
  extends Change[Done]("truncate") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object Truncate extends Companion[Truncate] {
  override def of(json: JObject): Truncate = Truncate(LoadedTable.of(json), takeIfAny[Token](json, "token"))
}

/** The id of a write that starts from the version which was loaded, and the token of its commit. */
private[lakelog] final case class BeginWrite(table: LoadedTable)
  extends Request[Begun]("begin_write") {
  override def members: Members = table.members
  override def answer(json: JObject): Begun = Begun.of(json)
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

/** A write: its files' names begin with what `write` says. `version` is the one it starts from, if it is another. */
private[lakelog] final case class Begun(
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

private[lakelog] object Begun extends Companion[Begun] {
  override def of(json: JObject): Begun = Begun(
    take[WriteRef](json, "write"),
    takeIfAny[Token](json, "token"),
    take[Seq[NextValue]](json, "identities"),
    takeIfAny[Long](json, "version"))
}

/**
 * The id of a write of a streaming query, which starts from the newest version. Its rows were made to fit an older
 * version, and are written by the columns that `written_as` has: the newest must be like these two.
 */
private[lakelog] final case class BeginBatch(table: LoadedTable, name: String, writtenAs: Long)
  extends Request[Begun]("begin_batch") {
  override def members: Members = table.members ++ List("name" -> put(name), "written_as" -> put(writtenAs))
  override def answer(json: JObject): Begun = Begun.of(json)
}

private[lakelog] object BeginBatch extends Companion[BeginBatch] {
  override def of(json: JObject): BeginBatch = BeginBatch(
    LoadedTable.of(json),
    take[String](json, "name"),
    take[Long](json, "written_as"))
}

/**
 * One batch of a stream. Later batches have higher numbers; a table takes each at most once. `from_checkpoint`: the
 * numbers are a checkpoint's, which may repeat its last batch, and no earlier one. `after` is the mark that the stream
 * has kept of the last batch before.
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
 * Append, or replace what `filter` matches: `deletes` are its rows in files that have others too, where known, and
 * `copies` have those others, where the table deletes by copying.
 */
private[lakelog] final case class CommitWrite(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    operation: String,
    files: Seq[DataFile],
    filter: Option[Expression] = None,
    deletes: Option[Seq[Positions]] = None,
    copies: Option[Seq[DataFile]] = None,
    batch: Option[StreamBatch] = None,
    values: Seq[ValuesTaken] = Nil)
  extends Change[Written]("commit_write") {
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
  override def answer(json: JObject): Written = Written.of(json)
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
    takeIfAny[Seq[Positions]](json, "deletes"),
    takeIfAny[Seq[DataFile]](json, "copies"),
    takeIfAny[StreamBatch](json, "batch"),
    takeIfAny[Seq[ValuesTaken]](json, "values").getOrElse(Nil))
}

/** How many rows a commit has changed, as far as that is known. */
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
 * What a commit took: versions that were put or tried to, decisions that were made anew, waits for others, and requests
 * to the store with their bytes.
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
 * Whether the files are part of the table now: those of a batch that it has already are not. `rows` says how many rows
 * have changed. `mark` is what a streaming query keeps in its checkpoint, and sends `after` its next batch.
 */
private[lakelog] final case class Written(
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

private[lakelog] object Written extends Companion[Written] {
  override def of(json: JObject): Written = Written(
    take[Boolean](json, "written"),
    takeIfAny[RowsChanged](json, "rows"),
    takeIfAny[String](json, "mark"),
    takeIfAny[CommitCost](json, "cost"))
}

/**
 * A delete, update or merge, on the version that it has read; `condition` holds for all rows that it has read. Of the
 * rows in `files`, so many are new, and so many have the place of others, where tasks have counted them.
 */
private[lakelog] final case class CommitRows(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    operation: String,
    files: Seq[DataFile],
    removed: Seq[String],
    deletes: Seq[Positions],
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
    take[Seq[Positions]](json, "deletes"),
    takeIfAny[Expression](json, "condition"),
    takeIfAny[Seq[ValuesTaken]](json, "values").getOrElse(Nil),
    takeIfAny[Boolean](json, "reads_others").getOrElse(false),
    takeIfAny[Long](json, "inserted"),
    takeIfAny[Long](json, "updated"))
}

/** How many rows have changed, where that is known. */
private[lakelog] final case class CommittedRows(rows: Option[RowsChanged] = None, cost: Option[CommitCost] = None)
  extends Message {
  override def members: Members = List("rows" -> putIfAny(rows), "cost" -> putIfAny(cost))
}

private[lakelog] object CommittedRows extends Companion[CommittedRows] {
  override def of(json: JObject): CommittedRows = CommittedRows(
    takeIfAny[RowsChanged](json, "rows"),
    takeIfAny[CommitCost](json, "cost"))
}

/** What identifies a change of that name, place or namespace when it is retried. */
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
 * Files shall be of about that size, and have less than that share of deleted rows; small ones are joined where
 * `fan_in` of about one size are there, unless that is left to a clustering.
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

/** The next groups of files to be rewritten, and the files one group after the other as an Arrow stream. */
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
 * So many files that are rewritten together, by so many tasks if their rows are `spread`, which share the table's curve
 * by stretches of `cell` places; no new file has rows on both sides of the place `cut` of it.
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
 * Files shall be of about that size, in runs along the table's curve; those without an order wait until there are
 * `fresh_min` of them. With `full`, all runs are merged. `key` are the ids of the columns that the table was clustered
 * by when it began.
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

/** The next groups of files to be put in order, and the files one group after the other as an Arrow stream. */
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

/** What a clustering would do, up to about so many bytes, and how files would lie then: from metadata alone. */
private[lakelog] final case class ExpectClustering(
    table: LoadedTable,
    goal: ClusteringGoal,
    predicate: Option[Expression],
    limitBytes: Option[Long])
  extends Request[ExpectedClustering]("expect_clustering") {
  override def members: Members = table.members ++ List(
    "goal" -> put(goal),
    "predicate" -> putOrNull(predicate),
    "limit_bytes" -> putOrNull(limitBytes))
  override def answer(json: JObject): ExpectedClustering = ExpectedClustering.of(json)
}

private[lakelog] object ExpectClustering extends Companion[ExpectClustering] {
  override def of(json: JObject): ExpectClustering = ExpectClustering(
    LoadedTable.of(json),
    take[ClusteringGoal](json, "goal"),
    takeIfAny[Expression](json, "predicate"),
    takeIfAny[Long](json, "limit_bytes"))
}

/** What would be read and written, and how many files a look-up of a point reads, on average, before and then. */
private[lakelog] final case class ExpectedClustering(
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

private[lakelog] object ExpectedClustering extends Companion[ExpectedClustering] {
  override def of(json: JObject): ExpectedClustering = ExpectedClustering(
    take[Long](json, "read_files"),
    take[Long](json, "read_bytes"),
    take[Long](json, "written_files"),
    take[Long](json, "written_bytes"),
    take[Long](json, "deleted_rows"),
    take[Boolean](json, "is_left"),
    take[Double](json, "overlap_before"),
    take[Double](json, "overlap_after"))
}

/** The files of a group give way to these. */
private[lakelog] final case class Rewritten(removed: Seq[String], files: Seq[DataFile])
  extends Message {
  override def members: Members = List("removed" -> put(removed), "files" -> put(files))
}

private[lakelog] object Rewritten extends Companion[Rewritten] {
  override def of(json: JObject): Rewritten = Rewritten(
    take[Seq[String]](json, "removed"),
    take[Seq[DataFile]](json, "files"))
}

/** Commit groups that were rewritten. */
private[lakelog] final case class CommitCompaction(
    table: LoadedTable,
    token: Option[Token] = None,
    write: WriteRef,
    groups: Seq[Rewritten])
  extends Change[Lost]("commit_compaction") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "write" -> put(write),
    "groups" -> put(groups))
  override def answer(json: JObject): Lost = Lost.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object CommitCompaction extends Companion[CommitCompaction] {
  override def of(json: JObject): CommitCompaction = CommitCompaction(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[WriteRef](json, "write"),
    take[Seq[Rewritten]](json, "groups"))
}

/** Which groups were left out, as others have changed their files. */
private[lakelog] final case class Lost(lost: Seq[Long])
  extends Message {
  override def members: Members = List("lost" -> put(lost))
}

private[lakelog] object Lost extends Companion[Lost] {
  override def of(json: JObject): Lost = Lost(take[Seq[Long]](json, "lost"))
}
