// Written by scripts/wire from lakelog.spark.requests.plans: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The first `limit` rows by a column. */
private[lakelog] final case class TopLimit(column: String, ascending: Boolean, nullsFirst: Boolean, limit: Long)
  extends Message {
  override def members: Members = List(
    "column" -> put(column),
    "ascending" -> put(ascending),
    "nulls_first" -> put(nullsFirst),
    "limit" -> put(limit))
}

private[lakelog] object TopLimit extends Companion[TopLimit] {
  override def of(json: JObject): TopLimit = TopLimit(
    take[String](json, "column"),
    take[Boolean](json, "ascending"),
    take[Boolean](json, "nulls_first"),
    take[Long](json, "limit"))
}

/**
 * Return the files that may have rows like `predicate`, as an Arrow stream. It has the values of the partition fields
 * `keys` if all files are partitioned by them.
 */
private[lakelog] final case class PlanFiles(
    table: LoadedTable,
    predicate: Expression,
    top: Option[TopLimit] = None,
    keys: Seq[Long] = Nil)
  extends Request[PlanFacts]("plan") {
  override def members: Members = table.members ++ List(
    "predicate" -> put(predicate),
    "top" -> putIfAny(top),
    "keys" -> put(keys))
  override def answer(json: JObject): PlanFacts = PlanFacts.of(json)
}

private[lakelog] object PlanFiles extends Companion[PlanFiles] {
  override def of(json: JObject): PlanFiles = PlanFiles(
    LoadedTable.of(json),
    take[Expression](json, "predicate"),
    takeIfAny[TopLimit](json, "top"),
    takeIfAny[Seq[Long]](json, "keys").getOrElse(Nil))
}

/**
 * The version's file count, the deleted rows of the planned files, and the cost of planning. `by_partition` is how many
 * files the conditions on partitioned columns left out, if that is known.
 */
private[lakelog] final case class PlanFacts(
    files: Long = 0,
    deleted: Long = 0,
    requests: Long = 0,
    bytes: Long = 0,
    byPartition: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "files" -> putUnless(files)(0),
    "deleted" -> putUnless(deleted)(0),
    "requests" -> putUnless(requests)(0),
    "bytes" -> putUnless(bytes)(0),
    "by_partition" -> putIfAny(byPartition))
}

private[lakelog] object PlanFacts extends Companion[PlanFacts] {
  override def of(json: JObject): PlanFacts = PlanFacts(
    takeIfAny[Long](json, "files").getOrElse(0),
    takeIfAny[Long](json, "deleted").getOrElse(0),
    takeIfAny[Long](json, "requests").getOrElse(0),
    takeIfAny[Long](json, "bytes").getOrElse(0),
    takeIfAny[Long](json, "by_partition"))
}

/** Return the files in which an overwrite by a filter may replace some rows, but not all, as an Arrow stream. */
private[lakelog] final case class PlanCut(table: LoadedTable, predicate: Expression)
  extends Request[EmptyAnswer]("plan_cut") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object PlanCut extends Companion[PlanCut] {
  override def of(json: JObject): PlanCut = PlanCut(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** A table that a statement reads. `settled` is the version that the statement has read, or -1. */
private[lakelog] final case class TableRead(table: LoadedTable, settled: Long)
  extends Message {
  override def members: Members = table.members ++ List("settled" -> put(settled))
}

private[lakelog] object TableRead extends Companion[TableRead] {
  override def of(json: JObject): TableRead = TableRead(LoadedTable.of(json), take[Long](json, "settled"))
}

/** Return a version of each table, all as of the same moment. */
private[lakelog] final case class ReadTogether(tables: Seq[TableRead])
  extends Request[VersionList]("read_together") {
  override def members: Members = List("tables" -> put(tables))
  override def answer(json: JObject): VersionList = VersionList.of(json)
}

private[lakelog] object ReadTogether extends Companion[ReadTogether] {
  override def of(json: JObject): ReadTogether = ReadTogether(take[Seq[TableRead]](json, "tables"))
}

private[lakelog] final case class VersionList(versions: Seq[Long])
  extends Message {
  override def members: Members = List("versions" -> put(versions))
}

private[lakelog] object VersionList extends Companion[VersionList] {
  override def of(json: JObject): VersionList = VersionList(take[Seq[Long]](json, "versions"))
}

/** Return whether a delete by that condition takes whole files only. */
private[lakelog] final case class CanDelete(table: LoadedTable, predicate: Expression)
  extends Request[PossibleAnswer]("can_delete") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): PossibleAnswer = PossibleAnswer.of(json)
}

private[lakelog] object CanDelete extends Companion[CanDelete] {
  override def of(json: JObject): CanDelete = CanDelete(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** Return whether lakelog knows exactly which rows match. */
private[lakelog] final case class CanOverwrite(table: LoadedTable, predicate: Expression)
  extends Request[PossibleAnswer]("can_overwrite") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): PossibleAnswer = PossibleAnswer.of(json)
}

private[lakelog] object CanOverwrite extends Companion[CanOverwrite] {
  override def of(json: JObject): CanOverwrite = CanOverwrite(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** Return whether the table can be changed in that way. */
private[lakelog] final case class CanChange(table: LoadedTable, change: TableChange)
  extends Request[PossibleAnswer]("can_change") {
  override def members: Members = table.members ++ List("change" -> put(change))
  override def answer(json: JObject): PossibleAnswer = PossibleAnswer.of(json)
}

private[lakelog] object CanChange extends Companion[CanChange] {
  override def of(json: JObject): CanChange = CanChange(LoadedTable.of(json), take[TableChange](json, "change"))
}

/** `kind` is `count`, `min` or `max`; without a column, rows are counted. */
private[lakelog] final case class AggregateColumn(kind: String, column: Option[String])
  extends Message {
  override def members: Members = List("kind" -> put(kind), "column" -> putOrNull(column))
}

private[lakelog] object AggregateColumn extends Companion[AggregateColumn] {
  override def of(json: JObject): AggregateColumn = AggregateColumn(
    take[String](json, "kind"),
    takeIfAny[String](json, "column"))
}

/** Return the values of `group_by` and the aggregates, as an Arrow stream, if they are known without the files. */
private[lakelog] final case class ReadAggregates(
    table: LoadedTable,
    aggregates: Seq[AggregateColumn],
    groupBy: Seq[String])
  extends Request[AggregatesKnown]("aggregate") {
  override def members: Members = table.members ++ List("aggregates" -> put(aggregates), "group_by" -> put(groupBy))
  override def answer(json: JObject): AggregatesKnown = AggregatesKnown.of(json)
}

private[lakelog] object ReadAggregates extends Companion[ReadAggregates] {
  override def of(json: JObject): ReadAggregates = ReadAggregates(
    LoadedTable.of(json),
    take[Seq[AggregateColumn]](json, "aggregates"),
    take[Seq[String]](json, "group_by"))
}

private[lakelog] final case class AggregatesKnown(known: Boolean)
  extends Message {
  override def members: Members = List("known" -> put(known))
}

private[lakelog] object AggregatesKnown extends Companion[AggregatesKnown] {
  override def of(json: JObject): AggregatesKnown = AggregatesKnown(take[Boolean](json, "known"))
}
