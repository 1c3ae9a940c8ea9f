// Written by scripts/wire from lakelog.spark.requests.definitions: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** Which views are directly in a namespace. */
private[lakelog] final case class ListViews(namespace: Seq[String])
  extends Request[Views]("list_views") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): Views = Views.of(json)
}

private[lakelog] object ListViews extends Companion[ListViews] {
  override def of(json: JObject): ListViews = ListViews(take[Seq[String]](json, "namespace"))
}

private[lakelog] final case class Views(views: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("views" -> put(views))
}

private[lakelog] object Views extends Companion[Views] {
  override def of(json: JObject): Views = Views(take[Seq[Seq[String]]](json, "views"))
}

/** Which tables and views are directly in a namespace. */
private[lakelog] final case class ListRelations(namespace: Seq[String], like: Option[String] = None)
  extends Request[Relations]("list_relations") {
  override def members: Members = List("namespace" -> put(namespace), "like" -> putIfAny(like))
  override def answer(json: JObject): Relations = Relations.of(json)
}

private[lakelog] object ListRelations extends Companion[ListRelations] {
  override def of(json: JObject): ListRelations = ListRelations(
    take[Seq[String]](json, "namespace"),
    takeIfAny[String](json, "like"))
}

private[lakelog] final case class Relations(tables: Seq[Seq[String]], views: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("tables" -> put(tables), "views" -> put(views))
}

private[lakelog] object Relations extends Companion[Relations] {
  override def of(json: JObject): Relations = Relations(
    take[Seq[Seq[String]]](json, "tables"),
    take[Seq[Seq[String]]](json, "views"))
}

/** Whether there is such a view. */
private[lakelog] final case class ViewExists(identifier: Seq[String])
  extends Request[Exists]("view_exists") {
  override def members: Members = List("identifier" -> put(identifier))
  override def answer(json: JObject): Exists = Exists.of(json)
}

private[lakelog] object ViewExists extends Companion[ViewExists] {
  override def of(json: JObject): ViewExists = ViewExists(take[Seq[String]](json, "identifier"))
}

/**
 * Create a view, or with `replace` also replace it; without `create` only replace it. `expected` is the definition that
 * a replacement was made from: it has to be there still.
 */
private[lakelog] final case class DefineView(
    identifier: Seq[String],
    token: Option[Token] = None,
    view: ViewDefinition,
    create: Boolean,
    replace: Boolean,
    expected: Option[ViewDefinition] = None)
  extends Change[Done]("define_view") {
  override def members: Members = List(
    "identifier" -> put(identifier),
    "token" -> putOrNull(token),
    "view" -> put(view),
    "create" -> put(create),
    "replace" -> put(replace),
    "expected" -> putIfAny(expected))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(Some(identifier))
}

private[lakelog] object DefineView extends Companion[DefineView] {
  override def of(json: JObject): DefineView = DefineView(
    take[Seq[String]](json, "identifier"),
    takeIfAny[Token](json, "token"),
    take[ViewDefinition](json, "view"),
    take[Boolean](json, "create"),
    take[Boolean](json, "replace"),
    takeIfAny[ViewDefinition](json, "expected"))
}

/** Drop a view. */
private[lakelog] final case class DropView(identifier: Seq[String], token: Option[Token] = None)
  extends Change[Dropped]("drop_view") {
  override def members: Members = List("identifier" -> put(identifier), "token" -> putOrNull(token))
  override def answer(json: JObject): Dropped = Dropped.of(json)
  override def subject: MakeToken = MakeToken(Some(identifier))
}

private[lakelog] object DropView extends Companion[DropView] {
  override def of(json: JObject): DropView = DropView(
    take[Seq[String]](json, "identifier"),
    takeIfAny[Token](json, "token"))
}

/** Give a view another name. */
private[lakelog] final case class RenameView(identifier: Seq[String], token: Option[Token] = None, to: Seq[String])
  extends Change[Done]("rename_view") {
  override def members: Members = List("identifier" -> put(identifier), "token" -> putOrNull(token), "to" -> put(to))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(Some(identifier))
}

private[lakelog] object RenameView extends Companion[RenameView] {
  override def of(json: JObject): RenameView = RenameView(
    take[Seq[String]](json, "identifier"),
    takeIfAny[Token](json, "token"),
    take[Seq[String]](json, "to"))
}

/** Which functions are directly in a namespace. */
private[lakelog] final case class ListFunctions(namespace: Seq[String])
  extends Request[Functions]("list_functions") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): Functions = Functions.of(json)
}

private[lakelog] object ListFunctions extends Companion[ListFunctions] {
  override def of(json: JObject): ListFunctions = ListFunctions(take[Seq[String]](json, "namespace"))
}

private[lakelog] final case class Functions(functions: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("functions" -> put(functions))
}

private[lakelog] object Functions extends Companion[Functions] {
  override def of(json: JObject): Functions = Functions(take[Seq[Seq[String]]](json, "functions"))
}

/** About a function, whatever the case of its name unless the session minds it. */
private[lakelog] final case class OfFunction(identifier: Seq[String], caseSensitive: Boolean)
  extends Message {
  override def members: Members = List("identifier" -> put(identifier), "case_sensitive" -> put(caseSensitive))
}

private[lakelog] object OfFunction extends Companion[OfFunction] {
  override def of(json: JObject): OfFunction = OfFunction(
    take[Seq[String]](json, "identifier"),
    take[Boolean](json, "case_sensitive"))
}

/** The definition of a function, if there is one. Where it `runs`, the catalog's `stored-code` may refuse it. */
private[lakelog] final case class LoadFunction(function: OfFunction, runs: Boolean = false)
  extends Request[FoundFunction]("load_function") {
  override def members: Members = function.members ++ List("runs" -> put(runs))
  override def answer(json: JObject): FoundFunction = FoundFunction.of(json)
}

private[lakelog] object LoadFunction extends Companion[LoadFunction] {
  override def of(json: JObject): LoadFunction = LoadFunction(
    OfFunction.of(json),
    takeIfAny[Boolean](json, "runs").getOrElse(false))
}

private[lakelog] final case class FoundFunction(function: Option[FunctionDefinition])
  extends Message {
  override def members: Members = List("function" -> putOrNull(function))
}

private[lakelog] object FoundFunction extends Companion[FoundFunction] {
  override def of(json: JObject): FoundFunction = FoundFunction(takeIfAny[FunctionDefinition](json, "function"))
}

/** Create a function. */
private[lakelog] final case class CreateFunction(
    function: OfFunction,
    token: Option[Token] = None,
    definition: FunctionDefinition,
    orReplace: Boolean,
    ifNotExists: Boolean)
  extends Change[Done]("create_function") {
  override def members: Members = function.members ++ List(
    "token" -> putOrNull(token),
    "definition" -> put(definition),
    "or_replace" -> put(orReplace),
    "if_not_exists" -> put(ifNotExists))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(Some(function.identifier))
}

private[lakelog] object CreateFunction extends Companion[CreateFunction] {
  override def of(json: JObject): CreateFunction = CreateFunction(
    OfFunction.of(json),
    takeIfAny[Token](json, "token"),
    take[FunctionDefinition](json, "definition"),
    take[Boolean](json, "or_replace"),
    take[Boolean](json, "if_not_exists"))
}

/** Drop a function. */
private[lakelog] final case class DropFunction(function: OfFunction, token: Option[Token] = None)
  extends Change[Dropped]("drop_function") {
  override def members: Members = function.members ++ List("token" -> putOrNull(token))
  override def answer(json: JObject): Dropped = Dropped.of(json)
  override def subject: MakeToken = MakeToken(Some(function.identifier))
}

private[lakelog] object DropFunction extends Companion[DropFunction] {
  override def of(json: JObject): DropFunction = DropFunction(OfFunction.of(json), takeIfAny[Token](json, "token"))
}
