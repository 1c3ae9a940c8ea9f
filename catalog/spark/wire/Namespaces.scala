// Written by scripts/wire from lakelog.spark.requests.namespaces: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** Which namespaces are directly in this one. `if_any`: a warehouse that does not exist yet has none. */
private[lakelog] final case class ListNamespaces(namespace: Seq[String], ifAny: Boolean = false)
  extends Request[Namespaces]("list_namespaces") {
  override def members: Members = List("namespace" -> put(namespace), "if_any" -> put(ifAny))
  override def answer(json: JObject): Namespaces = Namespaces.of(json)
}

private[lakelog] object ListNamespaces extends Companion[ListNamespaces] {
  override def of(json: JObject): ListNamespaces = ListNamespaces(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Boolean](json, "if_any").getOrElse(false))
}

private[lakelog] final case class Namespaces(namespaces: Seq[Seq[String]])
  extends Message {
  override def members: Members = List("namespaces" -> put(namespaces))
}

private[lakelog] object Namespaces extends Companion[Namespaces] {
  override def of(json: JObject): Namespaces = Namespaces(take[Seq[Seq[String]]](json, "namespaces"))
}

/** Whether there is such a namespace. */
private[lakelog] final case class NamespaceExists(namespace: Seq[String])
  extends Request[Exists]("namespace_exists") {
  override def members: Members = List("namespace" -> put(namespace))
  override def answer(json: JObject): Exists = Exists.of(json)
}

private[lakelog] object NamespaceExists extends Companion[NamespaceExists] {
  override def of(json: JObject): NamespaceExists = NamespaceExists(take[Seq[String]](json, "namespace"))
}

/** The properties of a namespace. */
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
  extends Change[Done]("create_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "properties" -> put(properties))
  override def answer(json: JObject): Done = Done.of(json)
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
  extends Change[Done]("alter_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "set" -> put(set),
    "remove" -> put(remove))
  override def answer(json: JObject): Done = Done.of(json)
  override def subject: MakeToken = MakeToken(namespace = Some(namespace))
}

private[lakelog] object AlterNamespace extends Companion[AlterNamespace] {
  override def of(json: JObject): AlterNamespace = AlterNamespace(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Token](json, "token"),
    take[Map[String, String]](json, "set"),
    take[Seq[String]](json, "remove"))
}

/** Drop a namespace, with `cascade` also one that is not empty. */
private[lakelog] final case class DropNamespace(namespace: Seq[String], token: Option[Token] = None, cascade: Boolean)
  extends Change[Dropped]("drop_namespace") {
  override def members: Members = List(
    "namespace" -> put(namespace),
    "token" -> putOrNull(token),
    "cascade" -> put(cascade))
  override def answer(json: JObject): Dropped = Dropped.of(json)
  override def subject: MakeToken = MakeToken(namespace = Some(namespace))
}

private[lakelog] object DropNamespace extends Companion[DropNamespace] {
  override def of(json: JObject): DropNamespace = DropNamespace(
    take[Seq[String]](json, "namespace"),
    takeIfAny[Token](json, "token"),
    take[Boolean](json, "cascade"))
}
