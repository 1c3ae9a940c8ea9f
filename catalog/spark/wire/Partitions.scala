// Written by scripts/wire from lakelog.spark.requests.partitions: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * Return the files that may have rows of the partition `old`, as an Arrow stream, for an engine that rewrites them.
 */
private[lakelog] final case class PlanRename(table: LoadedTable, old: Map[String, Scalar], `new`: Map[String, Scalar])
  extends Request[RenamePlan]("plan_rename") {
  override def members: Members = table.members ++ List("old" -> put(old), "new" -> put(`new`))
  override def answer(json: JObject): RenamePlan = RenamePlan.of(json)
}

private[lakelog] object PlanRename extends Companion[PlanRename] {
  override def of(json: JObject): PlanRename = PlanRename(
    LoadedTable.of(json),
    take[Map[String, Scalar]](json, "old"),
    take[Map[String, Scalar]](json, "new"))
}

/** The columns that get other values. None if Python has to check the rows, and so rewrites them. */
private[lakelog] final case class RenamePlan(columns: Option[Seq[String]] = None)
  extends Message {
  override def members: Members = List("columns" -> putIfAny(columns))
}

private[lakelog] object RenamePlan extends Companion[RenamePlan] {
  override def of(json: JObject): RenamePlan = RenamePlan(takeIfAny[Seq[String]](json, "columns"))
}

/** Return the partitions that have these values as an Arrow stream, with the columns files, rows and bytes. */
private[lakelog] final case class ListPartitions(table: LoadedTable, where: Map[String, Scalar])
  extends Request[EmptyAnswer]("partitions") {
  override def members: Members = table.members ++ List("where" -> put(where))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object ListPartitions extends Companion[ListPartitions] {
  override def of(json: JObject): ListPartitions = ListPartitions(
    LoadedTable.of(json),
    take[Map[String, Scalar]](json, "where"))
}

/** Add partitions without rows. */
private[lakelog] final case class AddPartitions(
    table: LoadedTable,
    token: Option[Token] = None,
    partitions: Seq[Map[String, Scalar]])
  extends Change[EmptyAnswer]("add_partitions") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token), "partitions" -> put(partitions))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object AddPartitions extends Companion[AddPartitions] {
  override def of(json: JObject): AddPartitions = AddPartitions(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Seq[Map[String, Scalar]]](json, "partitions"))
}

/** Delete the rows of partitions, and the partitions. */
private[lakelog] final case class DropPartitions(
    table: LoadedTable,
    token: Option[Token] = None,
    partitions: Seq[Map[String, Scalar]])
  extends Change[EmptyAnswer]("drop_partitions") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token), "partitions" -> put(partitions))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object DropPartitions extends Companion[DropPartitions] {
  override def of(json: JObject): DropPartitions = DropPartitions(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Seq[Map[String, Scalar]]](json, "partitions"))
}

/** Delete the rows of partitions. */
private[lakelog] final case class TruncatePartitions(
    table: LoadedTable,
    token: Option[Token] = None,
    partitions: Seq[Map[String, Scalar]])
  extends Change[EmptyAnswer]("truncate_partitions") {
  override def members: Members = table.members ++ List("token" -> putOrNull(token), "partitions" -> put(partitions))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object TruncatePartitions extends Companion[TruncatePartitions] {
  override def of(json: JObject): TruncatePartitions = TruncatePartitions(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Seq[Map[String, Scalar]]](json, "partitions"))
}

/**
 * Give all rows of the partition `old` the values of `new`. If an engine rewrote the rows, `files` of its write have
 * them.
 */
private[lakelog] final case class RenamePartition(
    table: LoadedTable,
    token: Option[Token] = None,
    old: Map[String, Scalar],
    `new`: Map[String, Scalar],
    write: Option[WriteRef] = None,
    files: Option[Seq[DataFile]] = None)
  extends Change[EmptyAnswer]("rename_partition") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "old" -> put(old),
    "new" -> put(`new`),
    "write" -> putIfAny(write),
    "files" -> putIfAny(files))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object RenamePartition extends Companion[RenamePartition] {
  override def of(json: JObject): RenamePartition = RenamePartition(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[Map[String, Scalar]](json, "old"),
    take[Map[String, Scalar]](json, "new"),
    takeIfAny[WriteRef](json, "write"),
    takeIfAny[Seq[DataFile]](json, "files"))
}
