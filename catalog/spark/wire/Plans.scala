// Written by scripts/wire from lakelog.spark.requests.plans: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The first `limit` rows by a column. */
private[lakelog] final case class Top(column: String, ascending: Boolean, nullsFirst: Boolean, limit: Long)
  extends Message {
  override def members: Members = List(
    "column" -> put(column),
    "ascending" -> put(ascending),
    "nulls_first" -> put(nullsFirst),
    "limit" -> put(limit))
}

private[lakelog] object Top extends Companion[Top] {
  override def of(json: JObject): Top = Top(
    take[String](json, "column"),
    take[Boolean](json, "ascending"),
    take[Boolean](json, "nulls_first"),
    take[Long](json, "limit"))
}

/**
 * The files that may have rows like `predicate`, as an Arrow stream; with the values of the partition fields `keys`
 * where all of the files are partitioned by these.
 */
private[lakelog] final case class Plan(
    table: LoadedTable,
    predicate: Expression,
    top: Option[Top] = None,
    keys: Seq[Long] = Nil)
  extends Request[Planned]("plan") {
  override def members: Members = table.members ++ List(
    "predicate" -> put(predicate),
    "top" -> putIfAny(top),
    "keys" -> put(keys))
  override def answer(json: JObject): Planned = Planned.of(json)
}

private[lakelog] object Plan extends Companion[Plan] {
  override def of(json: JObject): Plan = Plan(
    LoadedTable.of(json),
    take[Expression](json, "predicate"),
    takeIfAny[Top](json, "top"),
    takeIfAny[Seq[Long]](json, "keys").getOrElse(Nil))
}

/**
 * How many files the version has, how many deleted rows those have that are planned, and what planning cost.
 * `by_partition` of those that are left out are so by what is asked of partitioned columns, where that is known.
 */
private[lakelog] final case class Planned(
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

private[lakelog] object Planned extends Companion[Planned] {
  override def of(json: JObject): Planned = Planned(
    takeIfAny[Long](json, "files").getOrElse(0),
    takeIfAny[Long](json, "deleted").getOrElse(0),
    takeIfAny[Long](json, "requests").getOrElse(0),
    takeIfAny[Long](json, "bytes").getOrElse(0),
    takeIfAny[Long](json, "by_partition"))
}

/** The files in which an overwrite by a filter may replace some rows and not all, as an Arrow stream. */
private[lakelog] final case class PlanCut(table: LoadedTable, predicate: Expression)
  extends Request[Done]("plan_cut") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): Done = Done.of(json)
}

private[lakelog] object PlanCut extends Companion[PlanCut] {
  override def of(json: JObject): PlanCut = PlanCut(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** A table that a statement reads. `settled` is the version that it has been read at already, or -1. */
private[lakelog] final case class TableRead(table: LoadedTable, settled: Long)
  extends Message {
  override def members: Members = table.members ++ List("settled" -> put(settled))
}

private[lakelog] object TableRead extends Companion[TableRead] {
  override def of(json: JObject): TableRead = TableRead(LoadedTable.of(json), take[Long](json, "settled"))
}

/** A version of each table, all of one moment. */
private[lakelog] final case class ReadTogether(tables: Seq[TableRead])
  extends Request[Versions]("read_together") {
  override def members: Members = List("tables" -> put(tables))
  override def answer(json: JObject): Versions = Versions.of(json)
}

private[lakelog] object ReadTogether extends Companion[ReadTogether] {
  override def of(json: JObject): ReadTogether = ReadTogether(take[Seq[TableRead]](json, "tables"))
}

private[lakelog] final case class Versions(versions: Seq[Long])
  extends Message {
  override def members: Members = List("versions" -> put(versions))
}

private[lakelog] object Versions extends Companion[Versions] {
  override def of(json: JObject): Versions = Versions(take[Seq[Long]](json, "versions"))
}

/** Whether a delete by that condition takes whole files only. */
private[lakelog] final case class CanDelete(table: LoadedTable, predicate: Expression)
  extends Request[Possible]("can_delete") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): Possible = Possible.of(json)
}

private[lakelog] object CanDelete extends Companion[CanDelete] {
  override def of(json: JObject): CanDelete = CanDelete(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** Whether it is known exactly which rows match. */
private[lakelog] final case class CanOverwrite(table: LoadedTable, predicate: Expression)
  extends Request[Possible]("can_overwrite") {
  override def members: Members = table.members ++ List("predicate" -> put(predicate))
  override def answer(json: JObject): Possible = Possible.of(json)
}

private[lakelog] object CanOverwrite extends Companion[CanOverwrite] {
  override def of(json: JObject): CanOverwrite = CanOverwrite(LoadedTable.of(json), take[Expression](json, "predicate"))
}

/** Whether the table can be changed in that way. */
private[lakelog] final case class CanChange(table: LoadedTable, change: TableChange)
  extends Request[Possible]("can_change") {
  override def members: Members = table.members ++ List("change" -> put(change))
  override def answer(json: JObject): Possible = Possible.of(json)
}

private[lakelog] object CanChange extends Companion[CanChange] {
  override def of(json: JObject): CanChange = CanChange(LoadedTable.of(json), take[TableChange](json, "change"))
}

/** `kind` is `count`, `min` or `max`; without a column, rows are counted. */
private[lakelog] final case class Aggregated(kind: String, column: Option[String])
  extends Message {
  override def members: Members = List("kind" -> put(kind), "column" -> putOrNull(column))
}

private[lakelog] object Aggregated extends Companion[Aggregated] {
  override def of(json: JObject): Aggregated = Aggregated(take[String](json, "kind"), takeIfAny[String](json, "column"))
}

/** The values of `group_by`, and then the aggregates, as an Arrow stream, if they are known without the files. */
private[lakelog] final case class Aggregate(table: LoadedTable, aggregates: Seq[Aggregated], groupBy: Seq[String])
  extends Request[Known]("aggregate") {
  override def members: Members = table.members ++ List("aggregates" -> put(aggregates), "group_by" -> put(groupBy))
  override def answer(json: JObject): Known = Known.of(json)
}

private[lakelog] object Aggregate extends Companion[Aggregate] {
  override def of(json: JObject): Aggregate = Aggregate(
    LoadedTable.of(json),
    take[Seq[Aggregated]](json, "aggregates"),
    take[Seq[String]](json, "group_by"))
}

private[lakelog] final case class Known(known: Boolean)
  extends Message {
  override def members: Members = List("known" -> put(known))
}

private[lakelog] object Known extends Companion[Known] {
  override def of(json: JObject): Known = Known(take[Boolean](json, "known"))
}
