// Written by scripts/wire from lakelog.spark.requests.jobs: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

private[lakelog] sealed abstract class AnyJob extends Message

private[lakelog] object AnyJob extends Companion[AnyJob] {
  override def of(json: JObject): AnyJob =
    take[String](json, "kind") match {
      case "compact" => Compact.of(json)
      case "cluster" => Cluster.of(json)
      case "footers" => ReadFooters.of(json)
      case "source" => FindSource.of(json)
      case "statistics" => ComputeStatistics.of(json)
      case "maintain" => Maintain.of(json)
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
      case "compact" => Compacted.of(json)
      case "footers" => FootersRead.of(json)
      case "source" => SourceFound.of(json)
      case "statistics" => StatisticsComputed.of(json)
      case "maintain" => Maintained.of(json)
      case "checksums" => ChecksumsTaken.of(json)
      case "count-rows" => RowsCounted.of(json)
      case "copy-rows" => RowsCopied.of(json)
      case "copy-objects" => ObjectsCopied.of(json)
      case "delete-objects" => ObjectsDeleted.of(json)
      case "bury-versions" => VersionsBuried.of(json)
      case other => unknown(other)
    }
}

/**
 * What was rewritten and committed, and the version of the table after that. `is_left`: a limit came before the end. Of
 * a clustering, `overlap_before` is how many files a look-up of a point read before it, and in a dry run
 * `overlap_after` what it would read then.
 */
private[lakelog] final case class Compacted(
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

private[lakelog] object Compacted extends Companion[Compacted] {
  override def of(json: JObject): Compacted = Compacted(
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

/** The files, and the schemas that there are among them; `table_schema` is that of the job. */
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
 * Where a source is. Of a table of Parquet files, its `columns` as Spark's JSON of a struct, the names of those that it
 * is partitioned by, and its folders where the catalog knows them.
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

/** The statistics of that version of the table with that id. */
private[lakelog] final case class StatisticsComputed(
    version: Long,
    id: String,
    rows: Long,
    columns: Seq[ColumnComputed])
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("statistics"),
    "version" -> put(version),
    "id" -> put(id),
    "rows" -> put(rows),
    "columns" -> put(columns))
}

private[lakelog] object StatisticsComputed extends Companion[StatisticsComputed] {
  override def of(json: JObject): StatisticsComputed = StatisticsComputed(
    take[Long](json, "version"),
    take[String](json, "id"),
    take[Long](json, "rows"),
    take[Seq[ColumnComputed]](json, "columns"))
}

/**
 * What was rewritten and committed of a table. `lost` groups were changed by others first; `is_left`: a limit came
 * before the end; `error` is what ended it.
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
    statistics: Option[StatisticsComputed] = None)
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
    takeIfAny[StatisticsComputed](json, "statistics"))
}

/** The tables in the order of the job, and how long they took. */
private[lakelog] final case class Maintained(tables: Seq[KeptTable], tookUs: Long)
  extends AnyResult {
  override def members: Members = List("kind" -> put("maintain"), "tables" -> put(tables), "took_us" -> put(tookUs))
}

private[lakelog] object Maintained extends Companion[Maintained] {
  override def of(json: JObject): Maintained = Maintained(
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

/** How many rows there are in each file, in their order; -1 where that is not known. */
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

/** All of them are gone. */
private[lakelog] final case class ObjectsDeleted(work: String)
  extends AnyResult {
  override def members: Members = List("kind" -> put("delete-objects"), "work" -> put(work))
}

private[lakelog] object ObjectsDeleted extends Companion[ObjectsDeleted] {
  override def of(json: JObject): ObjectsDeleted = ObjectsDeleted(take[String](json, "work"))
}

/**
 * How many commits have become tombstones, and their bytes with their sidecars. The versions `left` are none yet, in
 * their order: intents, what says how one ended, and objects that are not as they should be.
 */
private[lakelog] final case class VersionsBuried(commits: Long, sizeBytes: Long, left: Seq[Long])
  extends AnyResult {
  override def members: Members = List(
    "kind" -> put("bury-versions"),
    "commits" -> put(commits),
    "size_bytes" -> put(sizeBytes),
    "left" -> put(left))
}

private[lakelog] object VersionsBuried extends Companion[VersionsBuried] {
  override def of(json: JObject): VersionsBuried = VersionsBuried(
    take[Long](json, "commits"),
    take[Long](json, "size_bytes"),
    take[Seq[Long]](json, "left"))
}

/** Rewrite files of a table that may have rows like `where`, a condition in SQL, into files of at most so much. */
private[lakelog] final case class Compact(
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

private[lakelog] object Compact extends Companion[Compact] {
  override def of(json: JObject): Compact = Compact(
    take[Seq[String]](json, "table"),
    takeIfAny[String](json, "where"),
    take[CompactionGoal](json, "goal"),
    take[Long](json, "most_bytes"))
}

/**
 * Put rows of a table in the order of its curve, of files that may have rows like `where`, a condition in SQL; begin
 * nothing more once so many bytes were read. In a `dry` run only what it would do is counted. `overlap` is how many
 * files a look-up of a point reads before it.
 */
private[lakelog] final case class Cluster(
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

private[lakelog] object Cluster extends Companion[Cluster] {
  override def of(json: JObject): Cluster = Cluster(
    take[Seq[String]](json, "table"),
    takeIfAny[String](json, "where"),
    take[ClusteringGoal](json, "goal"),
    takeIfAny[Long](json, "limit_bytes"),
    take[Boolean](json, "dry"),
    takeIfAny[Double](json, "overlap").getOrElse(0))
}

/**
 * Read the footers of the files that have these values in the names of their folders. `schema` is that of the table
 * which shall have them, as Spark's JSON of a struct.
 */
private[lakelog] final case class ReadFooters(
    source: Source,
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
    take[Source](json, "source"),
    take[FreeJson](json, "schema"),
    take[Map[String, Option[String]]](json, "partition_filter"))
}

/**
 * Find a table of that format in the session catalog; of a path, which is taken as it is, only with `footers`: read the
 * footers of all files, which are Parquet files then.
 */
private[lakelog] final case class FindSource(source: Source, format: String, footers: Boolean)
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("source"),
    "source" -> put(source),
    "format" -> put(format),
    "footers" -> put(footers))
}

private[lakelog] object FindSource extends Companion[FindSource] {
  override def of(json: JObject): FindSource = FindSource(
    take[Source](json, "source"),
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
 * A table to be kept in shape: compacted with that goal, into files of at most so much, clustered with the other, if
 * there is one, and the statistics of these columns computed anew.
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
 * Do what is due for tables, a step of each at a time; begin nothing more after that time, or once so many bytes were
 * read.
 */
private[lakelog] final case class Maintain(tables: Seq[KeepTable], limitUs: Option[Long], limitBytes: Option[Long])
  extends AnyJob {
  override def members: Members = List(
    "kind" -> put("maintain"),
    "tables" -> put(tables),
    "limit_us" -> putOrNull(limitUs),
    "limit_bytes" -> putOrNull(limitBytes))
}

private[lakelog] object Maintain extends Companion[Maintain] {
  override def of(json: JObject): Maintain = Maintain(
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
 * Count the rows like `predicate`, which is about these `columns`, in each file that the call has, as a table with
 * these facts reads it; of those that lack any of the `stored` columns, by their names in files, nothing is known.
 * `whole`: whatever a file says of itself, all of it is read.
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

/** Write the rows of the files that the call has, but those like `predicate`, to files of a write of this table. */
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

/** Copy these objects, or read them, and hash their bytes. `work` is what they are a part of, `what` says it. */
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

/** Delete these objects, by URL, of which some may be gone already; `work` is what they are a part of. */
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
 * Make tombstones of the plain commits from version `first` on, before `until`, of the log whose objects are in the
 * folder `log`, a URL. `what` is the name of the table or namespace, up to version `last` of which all expires;
 * `features` are those of commits that are known here.
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
