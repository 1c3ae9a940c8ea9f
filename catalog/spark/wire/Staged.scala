// Written by scripts/wire from lakelog.spark.requests.staged: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * A table to be created. `kind` is `create`, `replace` or `create-or-replace`. `schema` is Spark's JSON of a struct.
 */
private[lakelog] final case class FutureTable(
    of: NamedObject,
    kind: String,
    schema: FreeJson,
    partitioning: Seq[Either[String, StatedField]],
    sortBy: Seq[Either[String, StatedField]] = Nil,
    clusterBy: Seq[Seq[String]] = Nil,
    properties: Map[String, String],
    ownLocation: Option[String],
    comment: Option[String],
    provider: Option[String],
    constraints: Seq[StatedConstraint] = Nil)
  extends Message {
  override def members: Members = of.members ++ List(
    "kind" -> put(kind),
    "schema" -> put(schema),
    "partitioning" -> put(partitioning),
    "sort_by" -> put(sortBy),
    "cluster_by" -> put(clusterBy),
    "properties" -> put(properties),
    "own_location" -> putOrNull(ownLocation),
    "comment" -> putOrNull(comment),
    "provider" -> putOrNull(provider),
    "constraints" -> put(constraints))
}

private[lakelog] object FutureTable extends Companion[FutureTable] {
  override def of(json: JObject): FutureTable = FutureTable(
    NamedObject.of(json),
    take[String](json, "kind"),
    take[FreeJson](json, "schema"),
    take[Seq[Either[String, StatedField]]](json, "partitioning"),
    takeIfAny[Seq[Either[String, StatedField]]](json, "sort_by").getOrElse(Nil),
    takeIfAny[Seq[Seq[String]]](json, "cluster_by").getOrElse(Nil),
    take[Map[String, String]](json, "properties"),
    takeIfAny[String](json, "own_location"),
    takeIfAny[String](json, "comment"),
    takeIfAny[String](json, "provider"),
    takeIfAny[Seq[StatedConstraint]](json, "constraints").getOrElse(Nil))
}

/** Prepare a table, which needs its rows before it is committed. */
private[lakelog] final case class StageTable(table: FutureTable)
  extends Request[StageFacts]("stage") {
  override def members: Members = table.members
  override def answer(json: JObject): StageFacts = StageFacts.of(json)
}

private[lakelog] object StageTable extends Companion[StageTable] {
  override def of(json: JObject): StageTable = StageTable(FutureTable.of(json))
}

/** `stage` is all that the commit needs. `table` are the facts of the future table. */
private[lakelog] final case class StageFacts(stage: StagedTable, table: TableFacts)
  extends Message {
  override def members: Members = List("stage" -> put(stage), "table" -> put(table))
}

private[lakelog] object StageFacts extends Companion[StageFacts] {
  override def of(json: JObject): StageFacts = StageFacts(
    take[StagedTable](json, "stage"),
    take[TableFacts](json, "table"))
}

/** Prepare a table. The answer becomes the `stage` of the request that commits it. */
private[lakelog] final case class PrepareTable(table: FutureTable)
  extends Request[StagedTable]("prepare_table") {
  override def members: Members = table.members
  override def answer(json: JObject): StagedTable = StagedTable.of(json)
}

private[lakelog] object PrepareTable extends Companion[PrepareTable] {
  override def of(json: JObject): PrepareTable = PrepareTable(FutureTable.of(json))
}

/** Make a staged table visible, with the files that were written for it. */
private[lakelog] final case class CommitStage(stage: StagedTable, files: Seq[DataFile])
  extends Request[TableFacts]("commit_stage") {
  override def members: Members = List("stage" -> put(stage), "files" -> put(files))
  override def answer(json: JObject): TableFacts = TableFacts.of(json)
}

private[lakelog] object CommitStage extends Companion[CommitStage] {
  override def of(json: JObject): CommitStage = CommitStage(
    take[StagedTable](json, "stage"),
    take[Seq[DataFile]](json, "files"))
}
