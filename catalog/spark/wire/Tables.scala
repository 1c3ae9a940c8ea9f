// Written by scripts/wire from lakelog.spark.requests.tables: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** List the tables directly in a namespace. */
private[lakelog] final case class ListTables(namespace: Seq[String], like: Option[String] = None)
  extends Request[TableList]("list_tables") {
  override def members: Members = List("namespace" -> put(namespace), "like" -> putIfAny(like))
  override def answer(json: JObject): TableList = TableList.of(json)
}

private[lakelog] object ListTables extends Companion[ListTables] {
  override def of(json: JObject): ListTables = ListTables(
    take[Seq[String]](json, "namespace"),
    takeIfAny[String](json, "like"))
}

private[lakelog] final case class TableList(tables: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("tables" -> put(tables))
}

private[lakelog] object TableList extends Companion[TableList] {
  override def of(json: JObject): TableList = TableList(take[Seq[Seq[String]]](json, "tables"))
}

/** Return whether the table exists. */
private[lakelog] final case class LookUpTable(of: NamedObject)
  extends Request[ExistsAnswer]("table_exists") {
  override def members: Members = of.members
  override def answer(json: JObject): ExistsAnswer = ExistsAnswer.of(json)
}

private[lakelog] object LookUpTable extends Companion[LookUpTable] {
  override def of(json: JObject): LookUpTable = LookUpTable(NamedObject.of(json))
}

/** Return the facts of a table, at a version or time, or on a tag or branch, if given. */
private[lakelog] final case class LoadTable(
    of: NamedObject,
    version: Option[Long] = None,
    timestampUs: Option[Long] = None,
    on: Option[NamedRef] = None)
  extends Request[TableFacts]("load_table") {
  override def members: Members = of.members ++ List(
    "version" -> putIfAny(version),
    "timestamp_us" -> putIfAny(timestampUs),
    "on" -> putIfAny(on))
  override def answer(json: JObject): TableFacts = TableFacts.of(json)
}

private[lakelog] object LoadTable extends Companion[LoadTable] {
  override def of(json: JObject): LoadTable = LoadTable(
    NamedObject.of(json),
    takeIfAny[Long](json, "version"),
    takeIfAny[Long](json, "timestamp_us"),
    takeIfAny[NamedRef](json, "on"))
}

/** A partition field. `result` is the type of its values, as Spark calls it. */
private[lakelog] final case class PartitionFacts(
    transform: String,
    args: Seq[Long],
    column: Seq[String],
    fieldId: Long,
    name: String,
    result: String)
  extends Message {
  override def members: Members = List(
    "transform" -> put(transform),
    "args" -> put(args),
    "column" -> put(column),
    "field_id" -> put(fieldId),
    "name" -> put(name),
    "result" -> put(result))
}

private[lakelog] object PartitionFacts extends Companion[PartitionFacts] {
  override def of(json: JObject): PartitionFacts = PartitionFacts(
    take[String](json, "transform"),
    take[Seq[Long]](json, "args"),
    take[Seq[String]](json, "column"),
    take[Long](json, "field_id"),
    take[String](json, "name"),
    take[String](json, "result"))
}

/** A field of the sort order: `direction` is `asc` or `desc`, `nulls` is `first` or `last`. */
private[lakelog] final case class SortFacts(
    transform: String,
    args: Seq[Long],
    column: Seq[String],
    direction: String,
    nulls: String)
  extends Message {
  override def members: Members = List(
    "transform" -> put(transform),
    "args" -> put(args),
    "column" -> put(column),
    "direction" -> put(direction),
    "nulls" -> put(nulls))
}

private[lakelog] object SortFacts extends Companion[SortFacts] {
  override def of(json: JObject): SortFacts = SortFacts(
    take[String](json, "transform"),
    take[Seq[Long]](json, "args"),
    take[Seq[String]](json, "column"),
    take[String](json, "direction"),
    take[String](json, "nulls"))
}

/** A column of a clustering, and the boundaries of its values, in ascending order. */
private[lakelog] final case class RankedColumn(column: Seq[String], bounds: Seq[Scalar])
  extends Message {
  override def members: Members = List("column" -> put(column), "bounds" -> put(bounds))
}

private[lakelog] object RankedColumn extends Companion[RankedColumn] {
  override def of(json: JObject): RankedColumn = RankedColumn(
    take[Seq[String]](json, "column"),
    take[Seq[Scalar]](json, "bounds"))
}

/** The curve along which new rows are ordered. It has a generation of boundaries, and ranks of so many bits. */
private[lakelog] final case class CurveFacts(generation: Long, bits: Long, columns: Seq[RankedColumn])
  extends Message {
  override def members: Members = List("generation" -> put(generation), "bits" -> put(bits), "columns" -> put(columns))
}

private[lakelog] object CurveFacts extends Companion[CurveFacts] {
  override def of(json: JObject): CurveFacts = CurveFacts(
    take[Long](json, "generation"),
    take[Long](json, "bits"),
    take[Seq[RankedColumn]](json, "columns"))
}

/** A constraint with the names of its columns. `kind` is `check`, `primary-key`, `unique` or `foreign-key`. */
private[lakelog] final case class ConstraintFacts(
    kind: String,
    name: String,
    rely: Boolean,
    columns: Seq[Seq[String]],
    sql: Option[String] = None,
    predicate: Option[Expression] = None,
    table: Option[Seq[String]] = None,
    referenced: Option[Seq[String]] = None)
  extends Message {
  override def members: Members = List(
    "kind" -> put(kind),
    "name" -> put(name),
    "rely" -> put(rely),
    "columns" -> put(columns),
    "sql" -> putIfAny(sql),
    "predicate" -> putIfAny(predicate),
    "table" -> putIfAny(table),
    "referenced" -> putIfAny(referenced))
}

private[lakelog] object ConstraintFacts extends Companion[ConstraintFacts] {
  override def of(json: JObject): ConstraintFacts = ConstraintFacts(
    take[String](json, "kind"),
    take[String](json, "name"),
    take[Boolean](json, "rely"),
    take[Seq[Seq[String]]](json, "columns"),
    takeIfAny[String](json, "sql"),
    takeIfAny[Expression](json, "predicate"),
    takeIfAny[Seq[String]](json, "table"),
    takeIfAny[Seq[String]](json, "referenced"))
}

/** The statistics of a whole column, of type `type`, for Spark's optimizer. */
private[lakelog] final case class OptimizerEstimate(
    column: String,
    `type`: String,
    distinct: Option[Long] = None,
    nulls: Option[Long] = None,
    min: Option[Scalar] = None,
    max: Option[Scalar] = None,
    averageBytes: Option[Long] = None,
    mostBytes: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "column" -> put(column),
    "type" -> put(`type`),
    "distinct" -> putIfAny(distinct),
    "nulls" -> putIfAny(nulls),
    "min" -> putIfAny(min),
    "max" -> putIfAny(max),
    "average_bytes" -> putIfAny(averageBytes),
    "most_bytes" -> putIfAny(mostBytes))
}

private[lakelog] object OptimizerEstimate extends Companion[OptimizerEstimate] {
  override def of(json: JObject): OptimizerEstimate = OptimizerEstimate(
    take[String](json, "column"),
    take[String](json, "type"),
    takeIfAny[Long](json, "distinct"),
    takeIfAny[Long](json, "nulls"),
    takeIfAny[Scalar](json, "min"),
    takeIfAny[Scalar](json, "max"),
    takeIfAny[Long](json, "average_bytes"),
    takeIfAny[Long](json, "most_bytes"))
}

/**
 * The columns of which new files have Bloom filters. Each filter holds `ndv` different values at most. `fpp` is its
 * rate of false positives.
 */
private[lakelog] final case class BloomFacts(columns: Seq[Seq[String]], fpp: Double, ndv: Long)
  extends Message {
  override def members: Members = List("columns" -> put(columns), "fpp" -> put(fpp), "ndv" -> put(ndv))
}

private[lakelog] object BloomFacts extends Companion[BloomFacts] {
  override def of(json: JObject): BloomFacts = BloomFacts(
    take[Seq[Seq[String]]](json, "columns"),
    take[Double](json, "fpp"),
    take[Long](json, "ndv"))
}

/**
 * The facts of a table's version. `schema` is Spark's JSON, with ids and physical names in its metadata. `write_modes`
 * are the modes of DELETE, UPDATE and MERGE. `estimates` are missing after rows were added. With `computes`, a write
 * runs stored code, and `may_compute` says whether it may.
 */
private[lakelog] final case class TableFacts(
    id: String,
    version: Long,
    past: Boolean,
    step: Long,
    ref: Option[LoadedRef] = None,
    foundBy: Option[FoundBy] = None,
    location: String,
    ownLocation: Boolean,
    provider: Option[String],
    comment: Option[String],
    schema: FreeJson,
    specId: Long,
    partitioning: Seq[PartitionFacts],
    sortOrder: Seq[SortFacts],
    clustering: Seq[Seq[String]],
    curve: Option[CurveFacts] = None,
    constraints: Seq[ConstraintFacts],
    estimates: Seq[OptimizerEstimate],
    properties: Map[String, String],
    targetFileSizeBytes: Long,
    compressionCodec: String,
    bloom: Option[BloomFacts] = None,
    writeModes: Map[String, String],
    computes: Boolean = false)
  extends Message {
  override def members: Members = List(
    "id" -> put(id),
    "version" -> put(version),
    "past" -> put(past),
    "step" -> put(step),
    "ref" -> putIfAny(ref),
    "found_by" -> putIfAny(foundBy),
    "location" -> put(location),
    "own_location" -> put(ownLocation),
    "provider" -> putOrNull(provider),
    "comment" -> putOrNull(comment),
    "schema" -> put(schema),
    "spec_id" -> put(specId),
    "partitioning" -> put(partitioning),
    "sort_order" -> put(sortOrder),
    "clustering" -> put(clustering),
    "curve" -> putIfAny(curve),
    "constraints" -> put(constraints),
    "estimates" -> put(estimates),
    "properties" -> put(properties),
    "target_file_size_bytes" -> put(targetFileSizeBytes),
    "compression_codec" -> put(compressionCodec),
    "bloom" -> putIfAny(bloom),
    "write_modes" -> put(writeModes),
    "computes" -> putUnless(computes)(false))
}

private[lakelog] object TableFacts extends Companion[TableFacts] {
  override def of(json: JObject): TableFacts = TableFacts(
    take[String](json, "id"),
    take[Long](json, "version"),
    take[Boolean](json, "past"),
    take[Long](json, "step"),
    takeIfAny[LoadedRef](json, "ref"),
    takeIfAny[FoundBy](json, "found_by"),
    take[String](json, "location"),
    take[Boolean](json, "own_location"),
    takeIfAny[String](json, "provider"),
    takeIfAny[String](json, "comment"),
    take[FreeJson](json, "schema"),
    take[Long](json, "spec_id"),
    take[Seq[PartitionFacts]](json, "partitioning"),
    take[Seq[SortFacts]](json, "sort_order"),
    take[Seq[Seq[String]]](json, "clustering"),
    takeIfAny[CurveFacts](json, "curve"),
    take[Seq[ConstraintFacts]](json, "constraints"),
    take[Seq[OptimizerEstimate]](json, "estimates"),
    take[Map[String, String]](json, "properties"),
    take[Long](json, "target_file_size_bytes"),
    take[String](json, "compression_codec"),
    takeIfAny[BloomFacts](json, "bloom"),
    take[Map[String, String]](json, "write_modes"),
    takeIfAny[Boolean](json, "computes").getOrElse(false))
}

/** Return the object of a name: the facts of a table, or a view. */
private[lakelog] final case class LoadRelation(of: NamedObject)
  extends Request[Either[FoundView, TableFacts]]("load_relation") {
  override def members: Members = of.members
  override def answer(json: JObject): Either[FoundView, TableFacts] = if (has(json, "view")) Left(FoundView.of(json))
  else Right(
    TableFacts.of(json))
}

private[lakelog] object LoadRelation extends Companion[LoadRelation] {
  override def of(json: JObject): LoadRelation = LoadRelation(NamedObject.of(json))
}

private[lakelog] final case class FoundView(view: ViewDefinition)
  extends Message {
  override def members: Members = List("view" -> put(view))
}

private[lakelog] object FoundView extends Companion[FoundView] {
  override def of(json: JObject): FoundView = FoundView(take[ViewDefinition](json, "view"))
}

/**
 * Change the definition of a table, at a place also on a branch. `looked_at` is the version whose rows Spark has
 * checked against the new constraints, if any.
 */
private[lakelog] final case class AlterTable(
    of: NamedObject,
    token: Option[Token] = None,
    changes: Seq[TableChange],
    ref: Option[LoadedRef] = None,
    lookedAt: Option[LoadedTable] = None)
  extends Change[TableFacts]("alter_table") {
  override def members: Members = of.members ++ List(
    "token" -> putOrNull(token),
    "changes" -> put(changes),
    "ref" -> putIfAny(ref),
    "looked_at" -> putIfAny(lookedAt))
  override def answer(json: JObject): TableFacts = TableFacts.of(json)
  override def subject: MakeToken = MakeToken(of.identifier, of.location)
}

private[lakelog] object AlterTable extends Companion[AlterTable] {
  override def of(json: JObject): AlterTable = AlterTable(
    NamedObject.of(json),
    takeIfAny[Token](json, "token"),
    take[Seq[TableChange]](json, "changes"),
    takeIfAny[LoadedRef](json, "ref"),
    takeIfAny[LoadedTable](json, "looked_at"))
}

/** Drop a table. With `purge`, the drop cannot be undone. */
private[lakelog] final case class DropTable(of: NamedObject, token: Option[Token] = None, purge: Boolean = false)
  extends Change[DroppedAnswer]("drop_table") {
  override def members: Members = of.members ++ List("token" -> putOrNull(token), "purge" -> put(purge))
  override def answer(json: JObject): DroppedAnswer = DroppedAnswer.of(json)
  override def subject: MakeToken = MakeToken(of.identifier, of.location)
}

private[lakelog] object DropTable extends Companion[DropTable] {
  override def of(json: JObject): DropTable = DropTable(
    NamedObject.of(json),
    takeIfAny[Token](json, "token"),
    takeIfAny[Boolean](json, "purge").getOrElse(false))
}

/** Give a table another name. */
private[lakelog] final case class RenameTable(of: NamedObject, token: Option[Token] = None, to: Seq[String])
  extends Change[EmptyAnswer]("rename_table") {
  override def members: Members = of.members ++ List("token" -> putOrNull(token), "to" -> put(to))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(of.identifier, of.location)
}

private[lakelog] object RenameTable extends Companion[RenameTable] {
  override def of(json: JObject): RenameTable = RenameTable(
    NamedObject.of(json),
    takeIfAny[Token](json, "token"),
    take[Seq[String]](json, "to"))
}

/** Refuse writes that would run stored code, if the catalog's `stored-code` forbids it. */
private[lakelog] final case class MayCompute(table: LoadedTable)
  extends Request[EmptyAnswer]("may_compute") {
  override def members: Members = table.members
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object MayCompute extends Companion[MayCompute] {
  override def of(json: JObject): MayCompute = MayCompute(LoadedTable.of(json))
}
