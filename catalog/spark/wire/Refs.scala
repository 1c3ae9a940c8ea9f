// Written by scripts/wire from lakelog.spark.requests.refs: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The start of a tag or branch: a version, a time, another tag or branch, else the loaded version. */
private[lakelog] final case class AsOf(
    version: Option[Long] = None,
    timestampUs: Option[Long] = None,
    ref: Option[String] = None)
  extends Message {
  override def members: Members = List(
    "version" -> putIfAny(version),
    "timestamp_us" -> putIfAny(timestampUs),
    "ref" -> putIfAny(ref))
}

private[lakelog] object AsOf extends Companion[AsOf] {
  override def of(json: JObject): AsOf = AsOf(
    takeIfAny[Long](json, "version"),
    takeIfAny[Long](json, "timestamp_us"),
    takeIfAny[String](json, "ref"))
}

/**
 * Make a tag or branch, as `kind` says. `where` says whether the name may exist. With `new`, it must not exist. With
 * `new-or-there`, an existing ref stays as it is. With `any`, an existing ref is replaced. With `there`, it must exist,
 * and is replaced.
 */
private[lakelog] final case class CreateRef(
    table: LoadedTable,
    token: Option[Token] = None,
    kind: String,
    name: String,
    where: String,
    asOf: AsOf)
  extends Change[EmptyAnswer]("create_ref") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "kind" -> put(kind),
    "name" -> put(name),
    "where" -> put(where),
    "as_of" -> put(asOf))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object CreateRef extends Companion[CreateRef] {
  override def of(json: JObject): CreateRef = CreateRef(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[String](json, "kind"),
    take[String](json, "name"),
    take[String](json, "where"),
    take[AsOf](json, "as_of"))
}

/** Drop a tag or branch, as `kind` says. */
private[lakelog] final case class DropRef(
    table: LoadedTable,
    token: Option[Token] = None,
    kind: String,
    name: String,
    ifExists: Boolean)
  extends Change[EmptyAnswer]("drop_ref") {
  override def members: Members = table.members ++ List(
    "token" -> putOrNull(token),
    "kind" -> put(kind),
    "name" -> put(name),
    "if_exists" -> put(ifExists))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
  override def subject: MakeToken = MakeToken(location = Some(table.location))
}

private[lakelog] object DropRef extends Companion[DropRef] {
  override def of(json: JObject): DropRef = DropRef(
    LoadedTable.of(json),
    takeIfAny[Token](json, "token"),
    take[String](json, "kind"),
    take[String](json, "name"),
    take[Boolean](json, "if_exists"))
}
