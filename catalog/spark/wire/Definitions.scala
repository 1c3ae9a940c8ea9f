// Written by scripts/wire from lakelog.spark.requests.definitions: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** List the views directly in a namespace. */
private[lakelog] final case class ListViews(namespace: Seq[String])
  extends Request[ViewList]("list_views") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): ViewList = ViewList.of(json)
}

private[lakelog] object ListViews extends Companion[ListViews] {
  override def of(json: JObject): ListViews = ListViews(take[Seq[String]](json, "namespace"))
}

private[lakelog] final case class ViewList(views: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("views" -> put(views))
}

private[lakelog] object ViewList extends Companion[ViewList] {
  override def of(json: JObject): ViewList = ViewList(take[Seq[Seq[String]]](json, "views"))
}

/** List the tables and views directly in a namespace. */
private[lakelog] final case class ListRelations(namespace: Seq[String], like: Option[String] = None)
  extends Request[RelationList]("list_relations") {
  override def members: Members = List("namespace" -> put(namespace), "like" -> putIfAny(like))
  override def answer(json: JObject): RelationList = RelationList.of(json)
}

private[lakelog] object ListRelations extends Companion[ListRelations] {
  override def of(json: JObject): ListRelations = ListRelations(
    take[Seq[String]](json, "namespace"),
    takeIfAny[String](json, "like"))
}

private[lakelog] final case class RelationList(tables: Seq[Seq[String]], views: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("tables" -> put(tables), "views" -> put(views))
}

private[lakelog] object RelationList extends Companion[RelationList] {
  override def of(json: JObject): RelationList = RelationList(
    take[Seq[Seq[String]]](json, "tables"),
    take[Seq[Seq[String]]](json, "views"))
}

/** Return whether the view exists. */
private[lakelog] final case class LookUpView(identifier: Seq[String])
  extends Request[ExistsAnswer]("view_exists") {
  override def members: Members = List("identifier" -> put(identifier))
  override def answer(json: JObject): ExistsAnswer = ExistsAnswer.of(json)
}

private[lakelog] object LookUpView extends Companion[LookUpView] {
  override def of(json: JObject): LookUpView = LookUpView(take[Seq[String]](json, "identifier"))
}

/**
 * Create a view, or with `replace` also replace it. Without `create`, only replace it. `expected` is the definition
 * that a replacement was made from. It must not have changed.
 */
private[lakelog] final case class DefineView(
    identifier: Seq[String],
    token: Option[Token] = None,
    view: ViewDefinition,
    create: Boolean,
    replace: Boolean,
    expected: Option[ViewDefinition] = None)
  extends Change[EmptyAnswer]("define_view") {
  override def members: Members = List(
    "identifier" -> put(identifier),
    "token" -> putOrNull(token),
    "view" -> put(view),
    "create" -> put(create),
    "replace" -> put(replace),
    "expected" -> putIfAny(expected))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
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
  extends Change[DroppedAnswer]("drop_view") {
  override def members: Members = List("identifier" -> put(identifier), "token" -> putOrNull(token))
  override def answer(json: JObject): DroppedAnswer = DroppedAnswer.of(json)
  override def subject: MakeToken = MakeToken(Some(identifier))
}

private[lakelog] object DropView extends Companion[DropView] {
  override def of(json: JObject): DropView = DropView(
    take[Seq[String]](json, "identifier"),
    takeIfAny[Token](json, "token"))
}

/** Give a view another name. */
private[lakelog] final case class RenameView(identifier: Seq[String], token: Option[Token] = None, to: Seq[String])
  extends Change[EmptyAnswer]("rename_view") {
  override def members: Members = List("identifier" -> put(identifier), "token" -> putOrNull(token), "to" -> put(to))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(Some(identifier))
}

private[lakelog] object RenameView extends Companion[RenameView] {
  override def of(json: JObject): RenameView = RenameView(
    take[Seq[String]](json, "identifier"),
    takeIfAny[Token](json, "token"),
    take[Seq[String]](json, "to"))
}

/** List the functions directly in a namespace. */
private[lakelog] final case class ListFunctions(namespace: Seq[String])
  extends Request[FunctionList]("list_functions") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): FunctionList = FunctionList.of(json)
}

private[lakelog] object ListFunctions extends Companion[ListFunctions] {
  override def of(json: JObject): ListFunctions = ListFunctions(take[Seq[String]](json, "namespace"))
}

private[lakelog] final case class FunctionList(functions: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("functions" -> put(functions))
}

private[lakelog] object FunctionList extends Companion[FunctionList] {
  override def of(json: JObject): FunctionList = FunctionList(take[Seq[Seq[String]]](json, "functions"))
}

/** A request about a function. The case of its name matters only if `case_sensitive`. */
private[lakelog] final case class FunctionRequest(identifier: Seq[String], caseSensitive: Boolean)
  extends Message {
  override def members: Members = List("identifier" -> put(identifier), "case_sensitive" -> put(caseSensitive))
}

private[lakelog] object FunctionRequest extends Companion[FunctionRequest] {
  override def of(json: JObject): FunctionRequest = FunctionRequest(
    take[Seq[String]](json, "identifier"),
    take[Boolean](json, "case_sensitive"))
}

/** Return the definition of a function if it exists. If it `runs`, the catalog's `stored-code` may refuse it. */
private[lakelog] final case class LoadFunction(function: FunctionRequest, runs: Boolean = false)
  extends Request[FoundFunction]("load_function") {
  override def members: Members = function.members ++ List("runs" -> put(runs))
  override def answer(json: JObject): FoundFunction = FoundFunction.of(json)
}

private[lakelog] object LoadFunction extends Companion[LoadFunction] {
  override def of(json: JObject): LoadFunction = LoadFunction(
    FunctionRequest.of(json),
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
    function: FunctionRequest,
    token: Option[Token] = None,
    definition: FunctionDefinition,
    orReplace: Boolean,
    ifNotExists: Boolean)
  extends Change[EmptyAnswer]("create_function") {
  override def members: Members = function.members ++ List(
    "token" -> putOrNull(token),
    "definition" -> put(definition),
    "or_replace" -> put(orReplace),
    "if_not_exists" -> put(ifNotExists))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(Some(function.identifier))
}

private[lakelog] object CreateFunction extends Companion[CreateFunction] {
  override def of(json: JObject): CreateFunction = CreateFunction(
    FunctionRequest.of(json),
    takeIfAny[Token](json, "token"),
    take[FunctionDefinition](json, "definition"),
    take[Boolean](json, "or_replace"),
    take[Boolean](json, "if_not_exists"))
}

/** Drop a function. */
private[lakelog] final case class DropFunction(function: FunctionRequest, token: Option[Token] = None)
  extends Change[DroppedAnswer]("drop_function") {
  override def members: Members = function.members ++ List("token" -> putOrNull(token))
  override def answer(json: JObject): DroppedAnswer = DroppedAnswer.of(json)
  override def subject: MakeToken = MakeToken(Some(function.identifier))
}

private[lakelog] object DropFunction extends Companion[DropFunction] {
  override def of(json: JObject): DropFunction = DropFunction(FunctionRequest.of(json), takeIfAny[Token](json, "token"))
}
