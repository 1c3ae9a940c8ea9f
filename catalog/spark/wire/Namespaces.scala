// Written by scripts/wire from lakelog.spark.requests.namespaces: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** List the namespaces directly in this namespace. With `if_any`, a warehouse that does not exist has none. */
private[lakelog] final case class ListNamespaces(namespace: Seq[String], ifAny: Boolean = false)
  extends Request[NamespaceList]("list_namespaces") {
  override def members: Members = List("namespace" -> put(namespace), "if_any" -> put(ifAny))
  override def answer(json: JObject): NamespaceList = NamespaceList.of(json)
}

private[lakelog] object ListNamespaces extends Companion[ListNamespaces] {
  override def of(json: JObject): ListNamespaces = ListNamespaces(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Boolean](json, "if_any").getOrElse(false))
}

private[lakelog] final case class NamespaceList(namespaces: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("namespaces" -> put(namespaces))
}

private[lakelog] object NamespaceList extends Companion[NamespaceList] {
  override def of(json: JObject): NamespaceList = NamespaceList(take[Seq[Seq[String]]](json, "namespaces"))
}

/** Return whether the namespace exists. */
private[lakelog] final case class LookUpNamespace(namespace: Seq[String])
  extends Request[ExistsAnswer]("namespace_exists") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): ExistsAnswer = ExistsAnswer.of(json)
}

private[lakelog] object LookUpNamespace extends Companion[LookUpNamespace] {
  override def of(json: JObject): LookUpNamespace = LookUpNamespace(take[Seq[String]](json, "namespace"))
}

/** Return the properties of a namespace. */
private[lakelog] final case class LoadNamespace(namespace: Seq[String])
  extends Request[NamespaceFacts]("load_namespace") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): NamespaceFacts = NamespaceFacts.of(json)
}

private[lakelog] object LoadNamespace extends Companion[LoadNamespace] {
  override def of(json: JObject): LoadNamespace = LoadNamespace(take[Seq[String]](json, "namespace"))
}

private[lakelog] final case class NamespaceFacts(properties: Map[String, String])
  extends Message {
  override def members: Members = List("properties" -> put(properties))
}

private[lakelog] object NamespaceFacts extends Companion[NamespaceFacts] {
  override def of(json: JObject): NamespaceFacts = NamespaceFacts(take[Map[String, String]](json, "properties"))
}

/** Create a namespace. */
private[lakelog] final case class CreateNamespace(
    namespace: Seq[String],
    token: Option[Token] = None,
    properties: Map[String, String])
  extends Change[EmptyAnswer]("create_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "properties" -> put(properties))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(namespace = Some(namespace))
}

private[lakelog] object CreateNamespace extends Companion[CreateNamespace] {
  override def of(json: JObject): CreateNamespace = CreateNamespace(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Token](json, "token"),
    take[Map[String, String]](json, "properties"))
}

/** Set and remove properties of a namespace. */
private[lakelog] final case class AlterNamespace(
    namespace: Seq[String],
    token: Option[Token] = None,
    set: Map[String, String],
    remove: Seq[String])
  extends Change[EmptyAnswer]("alter_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "set" -> put(set),
    "remove" -> put(remove))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(namespace = Some(namespace))
}

private[lakelog] object AlterNamespace extends Companion[AlterNamespace] {
  override def of(json: JObject): AlterNamespace = AlterNamespace(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Token](json, "token"),
    take[Map[String, String]](json, "set"),
    take[Seq[String]](json, "remove"))
}

/** Drop a namespace. With `cascade`, it need not be empty. */
private[lakelog] final case class DropNamespace(namespace: Seq[String], token: Option[Token] = None, cascade: Boolean)
  extends Change[DroppedAnswer]("drop_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "cascade" -> put(cascade))
  override def answer(json: JObject): DroppedAnswer = DroppedAnswer.of(json)
  override def subject: MakeToken = MakeToken(namespace = Some(namespace))
}

private[lakelog] object DropNamespace extends Companion[DropNamespace] {
  override def of(json: JObject): DropNamespace = DropNamespace(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Token](json, "token"),
    take[Boolean](json, "cascade"))
}
