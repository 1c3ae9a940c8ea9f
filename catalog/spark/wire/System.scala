// Written by scripts/wire from lakelog.spark.requests.system: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** List the tables of the namespace `system`. */
private[lakelog] final case class ListSystemTables()
  extends Request[SystemTables]("system_tables") {
  override def members: Members = List()
  override def answer(json: JObject): SystemTables = SystemTables.of(json)
}

private[lakelog] object ListSystemTables extends Companion[ListSystemTables] {
  override def of(json: JObject): ListSystemTables = ListSystemTables()
}

/** `schema` is Spark's JSON of a struct. */
private[lakelog] final case class DeclaredTable(name: String, schema: FreeJson)
  extends Message {
  override def members: Members = List("name" -> put(name), "schema" -> put(schema))
}

private[lakelog] object DeclaredTable extends Companion[DeclaredTable] {
  override def of(json: JObject): DeclaredTable = DeclaredTable(
    take[String](json, "name"),
    take[FreeJson](json, "schema"))
}

private[lakelog] final case class SystemTables(tables: Seq[DeclaredTable])
  extends Message {
  override def members: Members = List("tables" -> put(tables))
}

private[lakelog] object SystemTables extends Companion[SystemTables] {
  override def of(json: JObject): SystemTables = SystemTables(take[Seq[DeclaredTable]](json, "tables"))
}

/** Return these columns of all rows, or at least of all rows within the time bounds, as Arrow streams. */
private[lakelog] final case class ReadSystemTable(
    name: String,
    columns: Seq[String],
    sinceUs: Option[Long] = None,
    untilUs: Option[Long] = None)
  extends Request[StreamLengths]("read_system_table") {
  override def members: Members = List(
    "name" -> put(name),
    "columns" -> put(columns),
    "since_us" -> putIfAny(sinceUs),
    "until_us" -> putIfAny(untilUs))
  override def answer(json: JObject): StreamLengths = StreamLengths.of(json)
}

private[lakelog] object ReadSystemTable extends Companion[ReadSystemTable] {
  override def of(json: JObject): ReadSystemTable = ReadSystemTable(
    take[String](json, "name"),
    take[Seq[String]](json, "columns"),
    takeIfAny[Long](json, "since_us"),
    takeIfAny[Long](json, "until_us"))
}

/** The lengths of the Arrow streams in the bytes. */
private[lakelog] final case class StreamLengths(streams: Seq[Long])
  extends Message {
  override def members: Members = List("streams" -> put(streams))
}

private[lakelog] object StreamLengths extends Companion[StreamLengths] {
  override def of(json: JObject): StreamLengths = StreamLengths(take[Seq[Long]](json, "streams"))
}

/** Return the columns of a metadata table. */
private[lakelog] final case class DescribeMetadataTable(table: LoadedTable, name: String)
  extends Request[MetadataTable]("metadata_table") {
  override def members: Members = table.members ++ List("name" -> put(name))
  override def answer(json: JObject): MetadataTable = MetadataTable.of(json)
}

private[lakelog] object DescribeMetadataTable extends Companion[DescribeMetadataTable] {
  override def of(json: JObject): DescribeMetadataTable = DescribeMetadataTable(
    LoadedTable.of(json),
    take[String](json, "name"))
}

/** `schema` is Spark's JSON of a struct. */
private[lakelog] final case class MetadataTable(name: String, schema: FreeJson)
  extends Message {
  override def members: Members = List("name" -> put(name), "schema" -> put(schema))
}

private[lakelog] object MetadataTable extends Companion[MetadataTable] {
  override def of(json: JObject): MetadataTable = MetadataTable(
    take[String](json, "name"),
    take[FreeJson](json, "schema"))
}

/** Return these columns of all rows of a metadata table, as Arrow streams. */
private[lakelog] final case class ReadMetadataTable(table: LoadedTable, name: String, columns: Seq[String])
  extends Request[StreamLengths]("read_metadata_table") {
  override def members: Members = table.members ++ List("name" -> put(name), "columns" -> put(columns))
  override def answer(json: JObject): StreamLengths = StreamLengths.of(json)
}

private[lakelog] object ReadMetadataTable extends Companion[ReadMetadataTable] {
  override def of(json: JObject): ReadMetadataTable = ReadMetadataTable(
    LoadedTable.of(json),
    take[String](json, "name"),
    take[Seq[String]](json, "columns"))
}
