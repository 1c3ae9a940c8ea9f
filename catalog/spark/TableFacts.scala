package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JBool, JInt, JObject, JString}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.catalog.constraints.Constraint
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{DataType, StructType}

/** One version of a table, or a staged table, as Python describes it. */
private[lakelog] final case class TableFacts(json: JObject) {

  val id: String = Json.string(json, "id")
  val version: Long = Json.long(json, "version")

  /** Whether the user asked for this version, rather than for the newest. */
  val past: Boolean = Json.bool(json, "past")

  /** The tag or branch that it is on; None for the table itself. */
  val ref: Option[TableRef] = Json.get(json, "ref").collect { case ref: JObject => TableRef(ref) }

  /** How far its transaction had come when it was loaded: there a table changes without a new version. */
  val step: Long = Json.long(json, "step")

  /** The url of the table's place; data files' paths are relative to it. */
  val location: String = Json.string(json, "location")
  val ownLocation: Boolean = Json.bool(json, "own_location")
  val provider: Option[String] = Json.optionalString(json, "provider")
  val comment: Option[String] = Json.optionalString(json, "comment")
  val properties: Map[String, String] = Json.stringMap(json, "properties")
  lazy val constraints: Seq[Constraint] = Json.objects(json, "constraints").map(Constraints.fromJson)
  val specId: Int = Json.long(json, "spec_id").toInt

  /** What is known of whole columns, as estimates, each with the name of its column. */
  val estimates: Seq[JObject] = Json.objects(json, "estimates")

  /** The schema with column ids and physical names in its metadata: never shown to users. */
  val schema: StructType =
    DataType.fromJson(JsonMethods.compact(JsonMethods.render(Json.child(json, "schema")))).asInstanceOf[StructType]

  val partitionFields: Seq[PartitionField] = Json.objects(json, "partitioning").map { field =>
    val arguments = Json.list(field, "args").collect { case JInt(value) => value.toInt }
    PartitionField(
      Json.long(field, "field_id").toInt,
      PartitionTransform(Json.string(field, "transform"), arguments),
      Json.stringList(Json.get(field, "column").get),
      Json.string(field, "name"),
      DataType.fromJson(JsonMethods.compact(JsonMethods.render(Json.get(field, "result").get))))
  }

  val sortFields: Seq[SortField] = Json.objects(json, "sort_order").map { field =>
    SortField(
      PartitionTransform(
        Json.string(field, "transform"), Json.list(field, "args").collect { case JInt(value) => value.toInt }),
      Json.stringList(Json.get(field, "column").get),
      ascending = Json.string(field, "direction") == "asc",
      nullsFirst = Json.string(field, "nulls") == "first")
  }

  /** The columns by which writes cluster their rows. */
  val clustering: Seq[Seq[String]] = Json.list(json, "clustering").map(Json.stringList)

  /** Data files are closed when they reach about this size. */
  val targetFileBytes: Long = Json.long(json, "target_file_size_bytes")
  val compressionCodec: String = Json.string(json, "compression_codec")

  /** For DELETE, UPDATE and MERGE, in small letters: `merge-on-read` or `copy-on-write`. */
  val writeModes: Map[String, String] = Json.stringMap(json, "write_modes")

  /** What tells it from other tables, and its tags and branches from it and each other, whatever their names. */
  def ownId: String = ref.fold(id)(ref => s"$id/${ref.id}")

  /** How requests name this table once it is loaded: by its place and id, whatever it is renamed to. */
  def reference: JObject = referenceOf(version)

  /** The same table at another version. */
  def referenceOf(version: Long): JObject = Json.merge(
    Json.obj(
      "location" -> JString(location), "id" -> JString(id), "version" -> JInt(version), "past" -> JBool(past),
      "step" -> JInt(step)),
    ref.map("ref" -> _.json).toSeq: _*)
}

/** A tag or branch, as Python describes it and takes it again. */
private[lakelog] final case class TableRef(json: JObject) {
  val name: String = Json.string(json, "name")
  val id: String = Json.string(json, "id")

  /** `tag` or `branch`. */
  val kind: String = Json.string(json, "kind")
}

/**
 * What Spark knows a version of a table by, and hands back when it has looked at all rows of it. It has the id, as another
 * table may have the name by then.
 */
private[lakelog] final case class TableVersion(id: String, version: Long, step: Long) {

  override def toString: String = if (step == 0) s"$id@$version" else s"$id@$version+$step"

  /** How requests name this version, at the place of `table`. */
  def referenceIn(table: TableFacts): JObject =
    Json.merge(table.referenceOf(version), "id" -> JString(id), "step" -> JInt(step))
}

private[lakelog] object TableVersion {
  private val Form = """(.*)@(\d+)(?:\+(\d+))?""".r

  def of(table: TableFacts): TableVersion = TableVersion(table.id, table.version, table.step)

  def parse(text: String): TableVersion = text match {
    case Form(id, version, step) => TableVersion(id, version.toLong, Option(step).map(_.toLong).getOrElse(0L))
    case other => throw new IllegalStateException(s"'$other' is not a version of a lakelog table")
  }
}

/** A field of the partition spec: what it is computed from, and how; what its values are called, and their type. */
private[lakelog] final case class PartitionField(
    id: Int, transform: PartitionTransform, column: Seq[String], name: String, result: DataType) {
  def toSpark: Transform = transform.toSpark(column)
}

/** A field of the sort order. */
private[lakelog] final case class SortField(
    transform: PartitionTransform, column: Seq[String], ascending: Boolean, nullsFirst: Boolean)
