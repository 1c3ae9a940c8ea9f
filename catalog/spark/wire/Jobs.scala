// Written by scripts/wire from lakelog.spark.requests.jobs: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

private[lakelog] sealed abstract class AnyJob extends Message

private[lakelog] object AnyJob extends Companion[AnyJob] {
  override def of(json: JObject): AnyJob =
    take[String](json, "kind") match {
      case "compact" => CompactFiles.of(json)
      case "cluster" => ClusterFiles.of(json)
      case "footers" => ReadFooters.of(json)
      case "source" => FindSource.of(json)
      case "statistics" => ComputeStatistics.of(json)
      case "maintain" => MaintainTables.of(json)
      case "checksums" => TakeChecksums.of(json)
      case "count-rows" => CountRows.of(json)
      case "copy-rows" => CopyRows.of(json)
      case "copy-objects" => CopyObjects.of(json)
      case "delete-objects" => DeleteObjects.of(json)
      case "bury-versions" => BuryVersions.of(json)
      case other => unknown(other)
    }
}

private[lakelog] sealed abstract class AnyResult extends Message

private[lakelog] object AnyResult extends Companion[AnyResult] {
  override def of(json: JObject): AnyResult =
    take[String](json, "kind") match {
      case "compact" => CompactResult.of(json)
      case "footers" => FootersRead.of(json)
      case "source" => SourceFound.of(json)
      case "statistics" => StatisticsResult.of(json)
      case "maintain" => MaintainResult.of(json)
      case "checksums" => ChecksumsTaken.of(json)
      case "count-rows" => RowsCounted.of(json)
      case "copy-rows" => RowsCopied.of(json)
      case "copy-objects" => ObjectsCopied.of(json)
      case "delete-objects" => ObjectsDeleted.of(json)
      case "bury-versions" => BuryResult.of(json)
      case other => unknown(other)
    }
}

/**
 * The rewritten and committed files, and the table's version after that. `is_left` says that a limit came before the
 * end. For a clustering, `overlap_before` is how many files a look-up of a point read before it. In a dry run,
 * `overlap_after` is how many it would read after it.
 */
private[lakelog] final case class CompactResult(
    rewrittenFiles: Long,
    rewrittenBytes: Long,
    addedFiles: Long,
    addedBytes: Long,
    deletedRows: Long,
    currentVersion: Long,
    isLeft: Boolean = false,
    overlapBefore: Double = 0,
    overlapAfter: Double = 0)
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("compact"),
    "rewritten_files" -> put(rewrittenFiles),
    "rewritten_bytes" -> put(rewrittenBytes),
    "added_files" -> put(addedFiles),
    "added_bytes" -> put(addedBytes),
    "deleted_rows" -> put(deletedRows),
    "current_version" -> put(currentVersion),
    "is_left" -> putUnless(isLeft)(false),
    "overlap_before" -> putUnless(overlapBefore)(0),
    "overlap_after" -> putUnless(overlapAfter)(0))
}

private[lakelog] object CompactResult extends Companion[CompactResult] {
  override def of(json: JObject): CompactResult = CompactResult(
    take[Long](json, "rewritten_files"),
    take[Long](json, "rewritten_bytes"),
    take[Long](json, "added_files"),
    take[Long](json, "added_bytes"),
    take[Long](json, "deleted_rows"),
    take[Long](json, "current_version"),
    takeIfAny[Boolean](json, "is_left").getOrElse(false),
    takeIfAny[Double](json, "overlap_before").getOrElse(0),
    takeIfAny[Double](json, "overlap_after").getOrElse(0))
}

/** The files and their schemas. `table_schema` is the schema of the job. */
private[lakelog] final case class FootersRead(tableSchema: FreeJson, schemas: Seq[FreeJson], files: Seq[FooterFound])
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("footers"),
    "table_schema" -> put(tableSchema),
    "schemas" -> put(schemas),
    "files" -> put(files))
}

private[lakelog] object FootersRead extends Companion[FootersRead] {
  override def of(json: JObject): FootersRead = FootersRead(
    take[FreeJson](json, "table_schema"),
    take[Seq[FreeJson]](json, "schemas"),
    take[Seq[FooterFound]](json, "files"))
}

/**
 * The place of a source. A table of Parquet files also has its `columns`, as Spark's JSON of a struct, and the names of
 * its partition columns. It has its folders if the catalog knows them.
 */
private[lakelog] final case class SourceFound(
    url: String,
    columns: Option[FreeJson] = None,
    partitionedBy: Seq[String] = Nil,
    places: Option[Seq[PartitionPlace]] = None,
    footers: Option[FootersRead] = None)
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("source"),
    "url" -> put(url),
    "columns" -> putIfAny(columns),
    "partitioned_by" -> putUnless(partitionedBy)(Nil),
    "places" -> putIfAny(places),
    "footers" -> putIfAny(footers))
}

private[lakelog] object SourceFound extends Companion[SourceFound] {
  override def of(json: JObject): SourceFound = SourceFound(
    take[String](json, "url"),
    takeIfAny[FreeJson](json, "columns"),
    takeIfAny[Seq[String]](json, "partitioned_by").getOrElse(Nil),
    takeIfAny[Seq[PartitionPlace]](json, "places"),
    takeIfAny[FootersRead](json, "footers"))
}

/** The statistics of the table with that id, at that version. */
private[lakelog] final case class StatisticsResult(version: Long, id: String, rows: Long, columns: Seq[ColumnComputed])
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("statistics"),
    "version" -> put(version),
    "id" -> put(id),
    "rows" -> put(rows),
    "columns" -> put(columns))
}

private[lakelog] object StatisticsResult extends Companion[StatisticsResult] {
  override def of(json: JObject): StatisticsResult = StatisticsResult(
    take[Long](json, "version"),
    take[String](json, "id"),
    take[Long](json, "rows"),
    take[Seq[ColumnComputed]](json, "columns"))
}

/**
 * The rewritten and committed files of a table. Other clients changed `lost` groups first. `is_left` says that a limit
 * came before the end. `error` is the error that ended the work.
 */
private[lakelog] final case class KeptTable(
    table: Seq[String],
    rewrittenFiles: Long,
    rewrittenBytes: Long,
    addedFiles: Long,
    addedBytes: Long,
    deletedRows: Long,
    lost: Long,
    isLeft: Boolean,
    error: Option[String],
    statistics: Option[StatisticsResult] = None)
  extends Message {
  override def members: Members = List(
    "table" -> put(table),
    "rewritten_files" -> put(rewrittenFiles),
    "rewritten_bytes" -> put(rewrittenBytes),
    "added_files" -> put(addedFiles),
    "added_bytes" -> put(addedBytes),
    "deleted_rows" -> put(deletedRows),
    "lost" -> put(lost),
    "is_left" -> put(isLeft),
    "error" -> putOrNull(error),
    "statistics" -> putIfAny(statistics))
}

private[lakelog] object KeptTable extends Companion[KeptTable] {
  override def of(json: JObject): KeptTable = KeptTable(
    take[Seq[String]](json, "table"),
    take[Long](json, "rewritten_files"),
    take[Long](json, "rewritten_bytes"),
    take[Long](json, "added_files"),
    take[Long](json, "added_bytes"),
    take[Long](json, "deleted_rows"),
    take[Long](json, "lost"),
    take[Boolean](json, "is_left"),
    takeIfAny[String](json, "error"),
    takeIfAny[StatisticsResult](json, "statistics"))
}

/** The tables in the order of the job, and how long they took. */
private[lakelog] final case class MaintainResult(tables: Seq[KeptTable], tookUs: Long)
  extends AnyResult {
  override def members: Members = List("kind" -> put("maintain"), "tables" -> put(tables), "took_us" -> put(tookUs))
}

private[lakelog] object MaintainResult extends Companion[MaintainResult] {
  override def of(json: JObject): MaintainResult = MaintainResult(
    take[Seq[KeptTable]](json, "tables"),
    take[Long](json, "took_us"))
}

/** The files that could be read. */
private[lakelog] final case class ChecksumsTaken(files: Seq[ChecksumTaken])
  extends AnyResult {
  override def members: Members = List("kind" -> put("checksums"), "files" -> put(files))
}

private[lakelog] object ChecksumsTaken extends Companion[ChecksumsTaken] {
  override def of(json: JObject): ChecksumsTaken = ChecksumsTaken(take[Seq[ChecksumTaken]](json, "files"))
}

/** The row count of each file, in their order; -1 if it is not known. */
private[lakelog] final case class RowsCounted(counts: Seq[Long])
  extends AnyResult {
  override def members: Members = List("kind" -> put("count-rows"), "counts" -> put(counts))
}

private[lakelog] object RowsCounted extends Companion[RowsCounted] {
  override def of(json: JObject): RowsCounted = RowsCounted(take[Seq[Long]](json, "counts"))
}

/** The new files. */
private[lakelog] final case class RowsCopied(files: Seq[DataFile])
  extends AnyResult {
  override def members: Members = List("kind" -> put("copy-rows"), "files" -> put(files))
}

private[lakelog] object RowsCopied extends Companion[RowsCopied] {
  override def of(json: JObject): RowsCopied = RowsCopied(take[Seq[DataFile]](json, "files"))
}

/** The objects in the order of the job. */
private[lakelog] final case class ObjectsCopied(work: String, objects: Seq[ObjectCopied])
  extends AnyResult {
  override def members: Members = List("kind" -> put("copy-objects"), "work" -> put(work), "objects" -> put(objects))
}

private[lakelog] object ObjectsCopied extends Companion[ObjectsCopied] {
  override def of(json: JObject): ObjectsCopied = ObjectsCopied(
    take[String](json, "work"),
    take[Seq[ObjectCopied]](json, "objects"))
}

/** All objects of the job are gone. */
private[lakelog] final case class ObjectsDeleted(work: String)
  extends AnyResult {
  override def members: Members = List("kind" -> put("delete-objects"), "work" -> put(work))
}

private[lakelog] object ObjectsDeleted extends Companion[ObjectsDeleted] {
  override def of(json: JObject): ObjectsDeleted = ObjectsDeleted(take[String](json, "work"))
}

/**
 * How many commits have become tombstones, and their bytes with their sidecars. The versions `left`, in their order,
 * are not tombstones yet: intents, commits that settle an intent, and damaged objects.
 */
private[lakelog] final case class BuryResult(commits: Long, sizeBytes: Long, left: Seq[Long])
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("bury-versions"),
    "commits" -> put(commits),
    "size_bytes" -> put(sizeBytes),
    "left" -> put(left))
}

private[lakelog] object BuryResult extends Companion[BuryResult] {
  override def of(json: JObject): BuryResult = BuryResult(
    take[Long](json, "commits"),
    take[Long](json, "size_bytes"),
    take[Seq[Long]](json, "left"))
}

/**
 * Rewrite files of a table that may have rows like `where`, a condition in SQL, into files of at most `most_bytes`.
 */
private[lakelog] final case class CompactFiles(
    table: Seq[String],
    where: Option[String],
    goal: CompactionGoal,
    mostBytes: Long)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("compact"),
    "table" -> put(table),
    "where" -> putOrNull(where),
    "goal" -> put(goal),
    "most_bytes" -> put(mostBytes))
}

private[lakelog] object CompactFiles extends Companion[CompactFiles] {
  override def of(json: JObject): CompactFiles = CompactFiles(
    take[Seq[String]](json, "table"),
    takeIfAny[String](json, "where"),
    take[CompactionGoal](json, "goal"),
    take[Long](json, "most_bytes"))
}

/**
 * Put rows of a table in the order of its curve. It takes files that may have rows like `where`, a condition in SQL. It
 * begins no new step after reading `limit_bytes`. A `dry` run only counts the work. `overlap` is how many files a
 * look-up of a point reads before the job.
 */
private[lakelog] final case class ClusterFiles(
    table: Seq[String],
    where: Option[String],
    goal: ClusteringGoal,
    limitBytes: Option[Long],
    dry: Boolean,
    overlap: Double = 0)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("cluster"),
    "table" -> put(table),
    "where" -> putOrNull(where),
    "goal" -> put(goal),
    "limit_bytes" -> putOrNull(limitBytes),
    "dry" -> put(dry),
    "overlap" -> putUnless(overlap)(0))
}

private[lakelog] object ClusterFiles extends Companion[ClusterFiles] {
  override def of(json: JObject): ClusterFiles = ClusterFiles(
    take[Seq[String]](json, "table"),
    takeIfAny[String](json, "where"),
    take[ClusteringGoal](json, "goal"),
    takeIfAny[Long](json, "limit_bytes"),
    take[Boolean](json, "dry"),
    takeIfAny[Double](json, "overlap").getOrElse(0))
}

/**
 * Read the footers of the files that have these values in the names of their folders. `schema` is the schema of the
 * table that shall have the files, as Spark's JSON of a struct.
 */
private[lakelog] final case class ReadFooters(
    source: ForeignSource,
    schema: FreeJson,
    partitionFilter: Map[String, Option[String]])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("footers"),
    "source" -> put(source),
    "schema" -> put(schema),
    "partition_filter" -> put(partitionFilter))
}

private[lakelog] object ReadFooters extends Companion[ReadFooters] {
  override def of(json: JObject): ReadFooters = ReadFooters(
    take[ForeignSource](json, "source"),
    take[FreeJson](json, "schema"),
    take[Map[String, Option[String]]](json, "partition_filter"))
}

/**
 * Find a table of that format in the session catalog. A path is taken as it is. With `footers`, also read the footers
 * of all its files, which are Parquet files then.
 */
private[lakelog] final case class FindSource(source: ForeignSource, format: String, footers: Boolean)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("source"),
    "source" -> put(source),
    "format" -> put(format),
    "footers" -> put(footers))
}

private[lakelog] object FindSource extends Companion[FindSource] {
  override def of(json: JObject): FindSource = FindSource(
    take[ForeignSource](json, "source"),
    take[String](json, "format"),
    take[Boolean](json, "footers"))
}

/** Compute the statistics of these columns of a table. */
private[lakelog] final case class ComputeStatistics(table: Seq[String], columns: Seq[String])
  extends AnyJob {
  override def members: Members = List("kind" -> put("statistics"), "table" -> put(table), "columns" -> put(columns))
}

private[lakelog] object ComputeStatistics extends Companion[ComputeStatistics] {
  override def of(json: JObject): ComputeStatistics = ComputeStatistics(
    take[Seq[String]](json, "table"),
    take[Seq[String]](json, "columns"))
}

/**
 * A table to be kept in shape. It is compacted by `goal` into files of at most `most_bytes`, and clustered by
 * `clustering` if given. The statistics of the columns `statistics` are computed again.
 */
private[lakelog] final case class KeepTable(
    table: Seq[String],
    goal: CompactionGoal,
    mostBytes: Long,
    clustering: Option[ClusteringGoal] = None,
    statistics: Seq[String] = Nil)
  extends Message {
  override def members: Members = List(
    "table" -> put(table),
    "goal" -> put(goal),
    "most_bytes" -> put(mostBytes),
    "clustering" -> putIfAny(clustering),
    "statistics" -> putUnless(statistics)(Nil))
}

private[lakelog] object KeepTable extends Companion[KeepTable] {
  override def of(json: JObject): KeepTable = KeepTable(
    take[Seq[String]](json, "table"),
    take[CompactionGoal](json, "goal"),
    take[Long](json, "most_bytes"),
    takeIfAny[ClusteringGoal](json, "clustering"),
    takeIfAny[Seq[String]](json, "statistics").getOrElse(Nil))
}

/**
 * Do the due upkeep of tables, a step of each at a time. Begin no new step after that time, or after reading so many
 * bytes.
 */
private[lakelog] final case class MaintainTables(
    tables: Seq[KeepTable],
    limitUs: Option[Long],
    limitBytes: Option[Long])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("maintain"),
    "tables" -> put(tables),
    "limit_us" -> putOrNull(limitUs),
    "limit_bytes" -> putOrNull(limitBytes))
}

private[lakelog] object MaintainTables extends Companion[MaintainTables] {
  override def of(json: JObject): MaintainTables = MaintainTables(
    take[Seq[KeepTable]](json, "tables"),
    takeIfAny[Long](json, "limit_us"),
    takeIfAny[Long](json, "limit_bytes"))
}

/** Read these data files, by URL, from beginning to end. */
private[lakelog] final case class TakeChecksums(files: Seq[String])
  extends AnyJob {
  override def members: Members = List("kind" -> put("checksums"), "files" -> put(files))
}

private[lakelog] object TakeChecksums extends Companion[TakeChecksums] {
  override def of(json: JObject): TakeChecksums = TakeChecksums(take[Seq[String]](json, "files"))
}

/**
 * Count the rows like `predicate` in each file of the call, as a table with these facts reads it. `predicate` is about
 * these `columns`. The count of a file is unknown if it lacks any of the `stored` columns, by their names in files.
 * With `whole`, all of a file is read, whatever its statistics say.
 */
private[lakelog] final case class CountRows(
    table: TableFacts,
    text: String,
    predicate: Expression,
    columns: Seq[String],
    stored: Seq[String] = Nil,
    whole: Boolean = false)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("count-rows"),
    "table" -> put(table),
    "text" -> put(text),
    "predicate" -> put(predicate),
    "columns" -> put(columns),
    "stored" -> putUnless(stored)(Nil),
    "whole" -> putUnless(whole)(false))
}

private[lakelog] object CountRows extends Companion[CountRows] {
  override def of(json: JObject): CountRows = CountRows(
    take[TableFacts](json, "table"),
    take[String](json, "text"),
    take[Expression](json, "predicate"),
    take[Seq[String]](json, "columns"),
    takeIfAny[Seq[String]](json, "stored").getOrElse(Nil),
    takeIfAny[Boolean](json, "whole").getOrElse(false))
}

/** Write the rows of the call's files, except rows like `predicate`, to files of a write of this table. */
private[lakelog] final case class CopyRows(table: TableFacts, text: String, predicate: Expression, write: WriteRef)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("copy-rows"),
    "table" -> put(table),
    "text" -> put(text),
    "predicate" -> put(predicate),
    "write" -> put(write))
}

private[lakelog] object CopyRows extends Companion[CopyRows] {
  override def of(json: JObject): CopyRows = CopyRows(
    take[TableFacts](json, "table"),
    take[String](json, "text"),
    take[Expression](json, "predicate"),
    take[WriteRef](json, "write"))
}

/** Copy these objects, or read them, and hash their bytes. `work` is the id of the whole work, and `what` its name. */
private[lakelog] final case class CopyObjects(work: String, what: String, objects: Seq[ObjectToCopy])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("copy-objects"),
    "work" -> put(work),
    "what" -> put(what),
    "objects" -> put(objects))
}

private[lakelog] object CopyObjects extends Companion[CopyObjects] {
  override def of(json: JObject): CopyObjects = CopyObjects(
    take[String](json, "work"),
    take[String](json, "what"),
    take[Seq[ObjectToCopy]](json, "objects"))
}

/** Delete these objects, by URL. Some may be gone. `work` is the id of the whole work. */
private[lakelog] final case class DeleteObjects(work: String, what: String, objects: Seq[String])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("delete-objects"),
    "work" -> put(work),
    "what" -> put(what),
    "objects" -> put(objects))
}

private[lakelog] object DeleteObjects extends Companion[DeleteObjects] {
  override def of(json: JObject): DeleteObjects = DeleteObjects(
    take[String](json, "work"),
    take[String](json, "what"),
    take[Seq[String]](json, "objects"))
}

/**
 * Make tombstones of the plain commits from version `first` on, before `until`. The log's objects are in the folder
 * `log`, a URL. `what` is the name of the table or namespace, whose versions up to `last` expire. `features` are the
 * features of commits that lakelog knows here.
 */
private[lakelog] final case class BuryVersions(
    what: String,
    log: String,
    first: Long,
    until: Long,
    last: Long,
    features: Seq[String])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("bury-versions"),
    "what" -> put(what),
    "log" -> put(log),
    "first" -> put(first),
    "until" -> put(until),
    "last" -> put(last),
    "features" -> put(features))
}

private[lakelog] object BuryVersions extends Companion[BuryVersions] {
  override def of(json: JObject): BuryVersions = BuryVersions(
    take[String](json, "what"),
    take[String](json, "log"),
    take[Long](json, "first"),
    take[Long](json, "until"),
    take[Long](json, "last"),
    take[Seq[String]](json, "features"))
}
