// Written by scripts/wire from lakelog.catalog.core.schema: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

private[lakelog] sealed abstract class TableChange extends Message

private[lakelog] object TableChange extends Companion[TableChange] {
  override def of(json: JObject): TableChange =
    take[String](json, "change") match {
      case "set-property" => SetProperty.of(json)
      case "remove-property" => RemoveProperty.of(json)
      case "add-column" => AddColumn.of(json)
      case "rename-column" => RenameColumn.of(json)
      case "update-column-type" => UpdateColumnType.of(json)
      case "update-column-nullability" => UpdateColumnNullability.of(json)
      case "update-column-comment" => UpdateColumnComment.of(json)
      case "update-column-position" => UpdateColumnPosition.of(json)
      case "update-column-default" => UpdateColumnDefault.of(json)
      case "delete-column" => DeleteColumn.of(json)
      case "set-partitioning" => SetPartitioning.of(json)
      case "add-partition-field" => AddPartitionField.of(json)
      case "drop-partition-field" => DropPartitionField.of(json)
      case "replace-partition-field" => ReplacePartitionField.of(json)
      case "set-sort-order" => SetSortOrder.of(json)
      case "add-constraint" => AddConstraint.of(json)
      case "drop-constraint" => DropConstraint.of(json)
      case "set-clustering" => SetClustering.of(json)
      case other => unknown(other)
    }
}

/** A column of a view. `type` is its type as Spark's JSON. `metadata` is the engine's own. */
private[lakelog] final case class ViewColumn(
    name: String,
    `type`: FreeJson,
    nullable: Boolean = true,
    comment: Option[String] = None,
    metadata: FreeJson = FreeJson.empty)
  extends Message {
  override def members: Members = List(
    "name" -> put(name),
    "type" -> put(`type`),
    "nullable" -> putUnless(nullable)(true),
    "comment" -> putIfAny(comment),
    "metadata" -> putUnless(metadata)(FreeJson.empty))
}

private[lakelog] object ViewColumn extends Companion[ViewColumn] {
  override def of(json: JObject): ViewColumn = ViewColumn(
    take[String](json, "name"),
    take[FreeJson](json, "type"),
    takeIfAny[Boolean](json, "nullable").getOrElse(true),
    takeIfAny[String](json, "comment"),
    takeIfAny[FreeJson](json, "metadata").getOrElse(FreeJson.empty))
}

/** A dependency of a query: the name of a table or of a function. */
private[lakelog] final case class Dependency(table: Option[Seq[String]] = None, function: Option[Seq[String]] = None)
  extends Message {
  override def members: Members = List("table" -> putIfAny(table), "function" -> putIfAny(function))
}

private[lakelog] object Dependency extends Companion[Dependency] {
  override def of(json: JObject): Dependency = Dependency(
    takeIfAny[Seq[String]](json, "table"),
    takeIfAny[Seq[String]](json, "function"))
}

/**
 * A named query. Users see `columns`. The query's own names for them are `query_columns`. Names in `text` without a
 * catalog or namespace belong to `catalog` and `namespace`. A `catalog` of None is the view's own catalog, under any
 * name. `configs` are the engine's settings that the text was parsed with. `schema_mode` says what happens if the
 * query's columns change. `dependencies` are the objects that the query uses, as the engine reported them.
 */
private[lakelog] final case class ViewDefinition(
    text: String,
    columns: Seq[ViewColumn],
    queryColumns: Seq[String] = Nil,
    catalog: Option[String] = None,
    namespace: Seq[String] = Nil,
    configs: Map[String, String] = Map.empty,
    schemaMode: Option[String] = None,
    properties: Map[String, String] = Map.empty,
    dependencies: Option[Seq[Dependency]] = None)
  extends Message {
  override def members: Members = List(
    "kind" -> put("view"),
    "text" -> put(text),
    "columns" -> put(columns),
    "query_columns" -> putUnless(queryColumns)(Nil),
    "catalog" -> putIfAny(catalog),
    "namespace" -> putUnless(namespace)(Nil),
    "configs" -> putUnless(configs)(Map.empty),
    "schema_mode" -> putIfAny(schemaMode),
    "properties" -> putUnless(properties)(Map.empty),
    "dependencies" -> putIfAny(dependencies))
}

private[lakelog] object ViewDefinition extends Companion[ViewDefinition] {
  override def of(json: JObject): ViewDefinition = ViewDefinition(
    take[String](json, "text"),
    take[Seq[ViewColumn]](json, "columns"),
    takeIfAny[Seq[String]](json, "query_columns").getOrElse(Nil),
    takeIfAny[String](json, "catalog"),
    takeIfAny[Seq[String]](json, "namespace").getOrElse(Nil),
    takeIfAny[Map[String, String]](json, "configs").getOrElse(Map.empty),
    takeIfAny[String](json, "schema_mode"),
    takeIfAny[Map[String, String]](json, "properties").getOrElse(Map.empty),
    takeIfAny[Seq[Dependency]](json, "dependencies"))
}

private[lakelog] final case class SetProperty(key: String, value: String)
  extends TableChange {
  override def members: Members = List("change" -> put("set-property"), "key" -> put(key), "value" -> put(value))
}

private[lakelog] object SetProperty extends Companion[SetProperty] {
  override def of(json: JObject): SetProperty = SetProperty(take[String](json, "key"), take[String](json, "value"))
}

private[lakelog] final case class RemoveProperty(key: String)
  extends TableChange {
  override def members: Members = List("change" -> put("remove-property"), "key" -> put(key))
}

private[lakelog] object RemoveProperty extends Companion[RemoveProperty] {
  override def of(json: JObject): RemoveProperty = RemoveProperty(take[String](json, "key"))
}

/** The position behind the sibling called `after`. */
private[lakelog] final case class AfterColumn(after: String)
  extends Message {
  override def members: Members = List("after" -> put(after))
}

private[lakelog] object AfterColumn extends Companion[AfterColumn] {
  override def of(json: JObject): AfterColumn = AfterColumn(take[String](json, "after"))
}

/**
 * A value of a column: a JSON literal of the atomic type `type`. The type is the column's when the value was stored.
 * For any text it is `string`. The column may have another type by now. Raises InvalidInput if values of the type have
 * another form.
 */
private[lakelog] final case class TypedValue(`type`: String, value: Option[Scalar])
  extends Message {
  override def members: Members = List("type" -> put(`type`), "value" -> putOrNull(value))
}

private[lakelog] object TypedValue extends Companion[TypedValue] {
  override def of(json: JObject): TypedValue = TypedValue(take[String](json, "type"), takeIfAny[Scalar](json, "value"))
}

/**
 * A column's default. `current` is SQL text for new rows. `exists` is the value of rows in files without the column.
 * None is NULL.
 */
private[lakelog] final case class Default(current: Option[String] = None, exists: Option[TypedValue] = None)
  extends Message {
  override def members: Members = List("current" -> putIfAny(current), "exists" -> putIfAny(exists))
}

private[lakelog] object Default extends Companion[Default] {
  override def of(json: JObject): Default = Default(
    takeIfAny[String](json, "current"),
    takeIfAny[TypedValue](json, "exists"))
}

/**
 * `type` is in Spark's JSON. Without a position the column becomes the last of its struct. A `default` without `exists`
 * is a literal, which existing rows have too. A NULL in `exists` has any type.
 */
private[lakelog] final case class AddColumn(
    name: Seq[String],
    `type`: FreeJson,
    nullable: Boolean = true,
    comment: Option[String] = None,
    position: Option[Either[String, AfterColumn]] = None,
    default: Option[Default] = None)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("add-column"),
    "name" -> put(name),
    "type" -> put(`type`),
    "nullable" -> putUnless(nullable)(true),
    "comment" -> putIfAny(comment),
    "position" -> putIfAny(position),
    "default" -> putIfAny(default))
}

private[lakelog] object AddColumn extends Companion[AddColumn] {
  override def of(json: JObject): AddColumn = AddColumn(
    take[Seq[String]](json, "name"),
    take[FreeJson](json, "type"),
    takeIfAny[Boolean](json, "nullable").getOrElse(true),
    takeIfAny[String](json, "comment"),
    takeIfAny[Either[String, AfterColumn]](json, "position"),
    takeIfAny[Default](json, "default"))
}

private[lakelog] final case class RenameColumn(name: Seq[String], newName: String)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("rename-column"),
    "name" -> put(name),
    "new_name" -> put(newName))
}

private[lakelog] object RenameColumn extends Companion[RenameColumn] {
  override def of(json: JObject): RenameColumn = RenameColumn(
    take[Seq[String]](json, "name"),
    take[String](json, "new_name"))
}

private[lakelog] final case class UpdateColumnType(name: Seq[String], `type`: FreeJson)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("update-column-type"),
    "name" -> put(name),
    "type" -> put(`type`))
}

private[lakelog] object UpdateColumnType extends Companion[UpdateColumnType] {
  override def of(json: JObject): UpdateColumnType = UpdateColumnType(
    take[Seq[String]](json, "name"),
    take[FreeJson](json, "type"))
}

private[lakelog] final case class UpdateColumnNullability(name: Seq[String], nullable: Boolean)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("update-column-nullability"),
    "name" -> put(name),
    "nullable" -> put(nullable))
}

private[lakelog] object UpdateColumnNullability extends Companion[UpdateColumnNullability] {
  override def of(json: JObject): UpdateColumnNullability = UpdateColumnNullability(
    take[Seq[String]](json, "name"),
    take[Boolean](json, "nullable"))
}

private[lakelog] final case class UpdateColumnComment(name: Seq[String], comment: Option[String])
  extends TableChange {
  override def members: Members = List(
    "change" -> put("update-column-comment"),
    "name" -> put(name),
    "comment" -> putOrNull(comment))
}

private[lakelog] object UpdateColumnComment extends Companion[UpdateColumnComment] {
  override def of(json: JObject): UpdateColumnComment = UpdateColumnComment(
    take[Seq[String]](json, "name"),
    takeIfAny[String](json, "comment"))
}

private[lakelog] final case class UpdateColumnPosition(name: Seq[String], position: Either[String, AfterColumn])
  extends TableChange {
  override def members: Members = List(
    "change" -> put("update-column-position"),
    "name" -> put(name),
    "position" -> put(position))
}

private[lakelog] object UpdateColumnPosition extends Companion[UpdateColumnPosition] {
  override def of(json: JObject): UpdateColumnPosition = UpdateColumnPosition(
    take[Seq[String]](json, "name"),
    take[Either[String, AfterColumn]](json, "position"))
}

/** Changes the default of new rows. None removes it. Existing rows keep their values. */
private[lakelog] final case class UpdateColumnDefault(name: Seq[String], default: Option[Default])
  extends TableChange {
  override def members: Members = List(
    "change" -> put("update-column-default"),
    "name" -> put(name),
    "default" -> putOrNull(default))
}

private[lakelog] object UpdateColumnDefault extends Companion[UpdateColumnDefault] {
  override def of(json: JObject): UpdateColumnDefault = UpdateColumnDefault(
    take[Seq[String]](json, "name"),
    takeIfAny[Default](json, "default"))
}

private[lakelog] final case class DeleteColumn(name: Seq[String], ifExists: Boolean = false)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("delete-column"),
    "name" -> put(name),
    "if_exists" -> putUnless(ifExists)(false))
}

private[lakelog] object DeleteColumn extends Companion[DeleteColumn] {
  override def of(json: JObject): DeleteColumn = DeleteColumn(
    take[Seq[String]](json, "name"),
    takeIfAny[Boolean](json, "if_exists").getOrElse(false))
}

/**
 * A transform of a column in a statement. Without a `transform`, it is the column itself. The column is in `column`, or
 * alone in `columns`, by its name or its path. `direction` and `nulls` are only for a sort order, and `name` is only
 * for a partition field.
 */
private[lakelog] final case class StatedField(
    transform: String = "identity",
    args: Seq[Long] = Nil,
    column: Option[Either[String, Seq[String]]] = None,
    columns: Option[Seq[Either[String, Seq[String]]]] = None,
    direction: Option[String] = None,
    nulls: Option[String] = None,
    name: Option[String] = None)
  extends Message {
  override def members: Members = List(
    "transform" -> putUnless(transform)("identity"),
    "args" -> putUnless(args)(Nil),
    "column" -> putIfAny(column),
    "columns" -> putIfAny(columns),
    "direction" -> putIfAny(direction),
    "nulls" -> putIfAny(nulls),
    "name" -> putIfAny(name))
}

private[lakelog] object StatedField extends Companion[StatedField] {
  override def of(json: JObject): StatedField = StatedField(
    takeIfAny[String](json, "transform").getOrElse("identity"),
    takeIfAny[Seq[Long]](json, "args").getOrElse(Nil),
    takeIfAny[Either[String, Seq[String]]](json, "column"),
    takeIfAny[Seq[Either[String, Seq[String]]]](json, "columns"),
    takeIfAny[String](json, "direction"),
    takeIfAny[String](json, "nulls"),
    takeIfAny[String](json, "name"))
}

/** `fields` are column names or transforms, as `partitioning.spec_from_transforms` reads them. */
private[lakelog] final case class SetPartitioning(fields: Seq[Either[String, StatedField]])
  extends TableChange {
  override def members: Members = List("change" -> put("set-partitioning"), "fields" -> put(fields))
}

private[lakelog] object SetPartitioning extends Companion[SetPartitioning] {
  override def of(json: JObject): SetPartitioning = SetPartitioning(
    take[Seq[Either[String, StatedField]]](json, "fields"))
}

/** Also partitions new files by `field`. If `name` is None, the field's name is derived from the column's. */
private[lakelog] final case class AddPartitionField(field: Either[String, StatedField], name: Option[String] = None)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("add-partition-field"),
    "field" -> put(field),
    "name" -> putIfAny(name))
}

private[lakelog] object AddPartitionField extends Companion[AddPartitionField] {
  override def of(json: JObject): AddPartitionField = AddPartitionField(
    take[Either[String, StatedField]](json, "field"),
    takeIfAny[String](json, "name"))
}

/** `field` is the name of a partition field, or its column name or transform. */
private[lakelog] final case class DropPartitionField(field: Either[String, StatedField])
  extends TableChange {
  override def members: Members = List("change" -> put("drop-partition-field"), "field" -> put(field))
}

private[lakelog] object DropPartitionField extends Companion[DropPartitionField] {
  override def of(json: JObject): DropPartitionField = DropPartitionField(
    take[Either[String, StatedField]](json, "field"))
}

/** Replaces `field`, given as in `DropPartitionField`, with `by`. */
private[lakelog] final case class ReplacePartitionField(
    field: Either[String, StatedField],
    by: Either[String, StatedField],
    name: Option[String] = None)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("replace-partition-field"),
    "field" -> put(field),
    "by" -> put(by),
    "name" -> putIfAny(name))
}

private[lakelog] object ReplacePartitionField extends Companion[ReplacePartitionField] {
  override def of(json: JObject): ReplacePartitionField = ReplacePartitionField(
    take[Either[String, StatedField]](json, "field"),
    take[Either[String, StatedField]](json, "by"),
    takeIfAny[String](json, "name"))
}

/** `fields` are column names or transforms, as `partitioning.sort_order_from` reads them. */
private[lakelog] final case class SetSortOrder(fields: Seq[Either[String, StatedField]])
  extends TableChange {
  override def members: Members = List("change" -> put("set-sort-order"), "fields" -> put(fields))
}

private[lakelog] object SetSortOrder extends Companion[SetSortOrder] {
  override def of(json: JObject): SetSortOrder = SetSortOrder(take[Seq[Either[String, StatedField]]](json, "fields"))
}

/** A requested constraint, with column names. The `columns` of a CHECK are the columns in its condition. */
private[lakelog] final case class StatedConstraint(
    kind: String,
    name: String,
    columns: Seq[Seq[String]],
    rely: Boolean = false,
    sql: Option[String] = None,
    predicate: Option[Expression] = None,
    table: Option[Seq[String]] = None,
    referenced: Option[Seq[String]] = None)
  extends Message {
  override def members: Members = List(
    "kind" -> put(kind),
    "name" -> put(name),
    "columns" -> put(columns),
    "rely" -> putUnless(rely)(false),
    "sql" -> putIfAny(sql),
    "predicate" -> putIfAny(predicate),
    "table" -> putIfAny(table),
    "referenced" -> putIfAny(referenced))
}

private[lakelog] object StatedConstraint extends Companion[StatedConstraint] {
  override def of(json: JObject): StatedConstraint = StatedConstraint(
    take[String](json, "kind"),
    take[String](json, "name"),
    take[Seq[Seq[String]]](json, "columns"),
    takeIfAny[Boolean](json, "rely").getOrElse(false),
    takeIfAny[String](json, "sql"),
    takeIfAny[Expression](json, "predicate"),
    takeIfAny[Seq[String]](json, "table"),
    takeIfAny[Seq[String]](json, "referenced"))
}

private[lakelog] final case class AddConstraint(constraint: StatedConstraint)
  extends TableChange {
  override def members: Members = List("change" -> put("add-constraint"), "constraint" -> put(constraint))
}

private[lakelog] object AddConstraint extends Companion[AddConstraint] {
  override def of(json: JObject): AddConstraint = AddConstraint(take[StatedConstraint](json, "constraint"))
}

private[lakelog] final case class DropConstraint(name: String, ifExists: Boolean = false)
  extends TableChange {
  override def members: Members = List(
    "change" -> put("drop-constraint"),
    "name" -> put(name),
    "if_exists" -> putUnless(ifExists)(false))
}

private[lakelog] object DropConstraint extends Companion[DropConstraint] {
  override def of(json: JObject): DropConstraint = DropConstraint(
    take[String](json, "name"),
    takeIfAny[Boolean](json, "if_exists").getOrElse(false))
}

/** Clusters new rows by these columns. An empty list ends it. */
private[lakelog] final case class SetClustering(columns: Seq[Seq[String]])
  extends TableChange {
  override def members: Members = List("change" -> put("set-clustering"), "columns" -> put(columns))
}

private[lakelog] object SetClustering extends Companion[SetClustering] {
  override def of(json: JObject): SetClustering = SetClustering(take[Seq[Seq[String]]](json, "columns"))
}

/**
 * The values that a write took of an identity column: `first`, step by step, up to `last`, or some of these. With
 * `given`, some of its rows had their own value for that column.
 */
private[lakelog] final case class ValuesTaken(column: Long, first: BigInt, last: BigInt, `given`: Boolean = false)
  extends Message {
  override def members: Members = List(
    "column" -> put(column),
    "first" -> put(first),
    "last" -> put(last),
    "given" -> putUnless(`given`)(false))
}

private[lakelog] object ValuesTaken extends Companion[ValuesTaken] {
  override def of(json: JObject): ValuesTaken = ValuesTaken(
    take[Long](json, "column"),
    take[BigInt](json, "first"),
    take[BigInt](json, "last"),
    takeIfAny[Boolean](json, "given").getOrElse(false))
}

/**
 * A function. `language` is the kind of `body`: `sql` (an expression or query), or `java` (a class name). `parameters`
 * and `returns` are column lists or types in SQL, as the engine understands them. `resources` are the kinds and URLs of
 * files that a class needs. Names in an SQL body belong to `catalog` and `namespace`, and the engine's settings
 * `configs` apply to it. `properties` are the engine's own.
 */
private[lakelog] final case class FunctionDefinition(
    language: String,
    body: String,
    parameters: Option[String] = None,
    returns: Option[String] = None,
    isTable: Boolean = false,
    isQuery: Boolean = false,
    comment: Option[String] = None,
    catalog: Option[String] = None,
    namespace: Seq[String] = Nil,
    configs: Map[String, String] = Map.empty,
    resources: Seq[(String, String)] = Nil,
    properties: Map[String, String] = Map.empty)
  extends Message {
  override def members: Members = List(
    "kind" -> put("function"),
    "language" -> put(language),
    "body" -> put(body),
    "parameters" -> putIfAny(parameters),
    "returns" -> putIfAny(returns),
    "is_table" -> putUnless(isTable)(false),
    "is_query" -> putUnless(isQuery)(false),
    "comment" -> putIfAny(comment),
    "catalog" -> putIfAny(catalog),
    "namespace" -> putUnless(namespace)(Nil),
    "configs" -> putUnless(configs)(Map.empty),
    "resources" -> putUnless(resources)(Nil),
    "properties" -> putUnless(properties)(Map.empty))
}

private[lakelog] object FunctionDefinition extends Companion[FunctionDefinition] {
  override def of(json: JObject): FunctionDefinition = FunctionDefinition(
    take[String](json, "language"),
    take[String](json, "body"),
    takeIfAny[String](json, "parameters"),
    takeIfAny[String](json, "returns"),
    takeIfAny[Boolean](json, "is_table").getOrElse(false),
    takeIfAny[Boolean](json, "is_query").getOrElse(false),
    takeIfAny[String](json, "comment"),
    takeIfAny[String](json, "catalog"),
    takeIfAny[Seq[String]](json, "namespace").getOrElse(Nil),
    takeIfAny[Map[String, String]](json, "configs").getOrElse(Map.empty),
    takeIfAny[Seq[(String, String)]](json, "resources").getOrElse(Nil),
    takeIfAny[Map[String, String]](json, "properties").getOrElse(Map.empty))
}
