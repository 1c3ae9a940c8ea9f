// Written by scripts/wire from lakelog.spark.requests.base: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

private[lakelog] final case class ExistsAnswer(exists: Boolean)
  extends Message {
  override def members: Members = List("exists" -> put(exists))
}

private[lakelog] object ExistsAnswer extends Companion[ExistsAnswer] {
  override def of(json: JObject): ExistsAnswer = ExistsAnswer(take[Boolean](json, "exists"))
}

/** The request is done. */
private[lakelog] final case class EmptyAnswer()
  extends Message {
  override def members: Members = List()
}

private[lakelog] object EmptyAnswer extends Companion[EmptyAnswer] {
  override def of(json: JObject): EmptyAnswer = EmptyAnswer()
}

/** Whether there was anything to drop. */
private[lakelog] final case class DroppedAnswer(dropped: Boolean)
  extends Message {
  override def members: Members = List("dropped" -> put(dropped))
}

private[lakelog] object DroppedAnswer extends Companion[DroppedAnswer] {
  override def of(json: JObject): DroppedAnswer = DroppedAnswer(take[Boolean](json, "dropped"))
}

/** A request about the object at a name or a place. Exactly one of the two is given. */
private[lakelog] final case class NamedObject(identifier: Option[Seq[String]] = None, location: Option[String] = None)
  extends Message {
  override def members: Members = List("identifier" -> putIfAny(identifier), "location" -> putIfAny(location))
}

private[lakelog] object NamedObject extends Companion[NamedObject] {
  override def of(json: JObject): NamedObject = NamedObject(
    takeIfAny[Seq[String]](json, "identifier"),
    takeIfAny[String](json, "location"))
}

/** A tag or branch as a statement names it. If `kind` is given, it has to be of that kind. */
private[lakelog] final case class NamedRef(name: String, kind: Option[String] = None)
  extends Message {
  override def members: Members = List("name" -> put(name), "kind" -> putIfAny(kind))
}

private[lakelog] object NamedRef extends Companion[NamedRef] {
  override def of(json: JObject): NamedRef = NamedRef(take[String](json, "name"), takeIfAny[String](json, "kind"))
}

/** The tag or branch that a loaded table is on. `kind` is `tag` or `branch`. */
private[lakelog] final case class LoadedRef(name: String, id: String, kind: String)
  extends Message {
  override def members: Members = List("name" -> put(name), "id" -> put(id), "kind" -> put(kind))
}

private[lakelog] object LoadedRef extends Companion[LoadedRef] {
  override def of(json: JObject): LoadedRef = LoadedRef(
    take[String](json, "name"),
    take[String](json, "id"),
    take[String](json, "kind"))
}

/** The name that a table was loaded by, and the location of the namespace's log that the name led through. */
private[lakelog] final case class FoundBy(identifier: Seq[String], namespace: String)
  extends Message {
  override def members: Members = List("identifier" -> put(identifier), "namespace" -> put(namespace))
}

private[lakelog] object FoundBy extends Companion[FoundBy] {
  override def of(json: JObject): FoundBy = FoundBy(
    take[Seq[String]](json, "identifier"),
    take[String](json, "namespace"))
}

/**
 * A version of a table that the adapter has loaded. `past` says whether the user requested that version. `step` counts
 * the changes of the transaction, in which a table changes without a new version. A table with `found_by` is changed
 * only while it has that name.
 */
private[lakelog] final case class LoadedTable(
    location: String,
    id: String,
    version: Long,
    past: Boolean,
    step: Long,
    ref: Option[LoadedRef] = None,
    foundBy: Option[FoundBy] = None)
  extends Message {
  override def members: Members = List(
    "location" -> put(location),
    "id" -> put(id),
    "version" -> put(version),
    "past" -> put(past),
    "step" -> put(step),
    "ref" -> putIfAny(ref),
    "found_by" -> putIfAny(foundBy))
}

private[lakelog] object LoadedTable extends Companion[LoadedTable] {
  override def of(json: JObject): LoadedTable = LoadedTable(
    take[String](json, "location"),
    take[String](json, "id"),
    take[Long](json, "version"),
    take[Boolean](json, "past"),
    take[Long](json, "step"),
    takeIfAny[LoadedRef](json, "ref"),
    takeIfAny[FoundBy](json, "found_by"))
}

private[lakelog] final case class PossibleAnswer(possible: Boolean)
  extends Message {
  override def members: Members = List("possible" -> put(possible))
}

private[lakelog] object PossibleAnswer extends Companion[PossibleAnswer] {
  override def of(json: JObject): PossibleAnswer = PossibleAnswer(take[Boolean](json, "possible"))
}

/** The user and the statement of a change. The catalog's settings say how much of `text` Python keeps. */
private[lakelog] final case class UserStatement(
    user: String,
    application: String,
    query: Option[String],
    text: Option[String])
  extends Message {
  override def members: Members = List(
    "user" -> put(user),
    "application" -> put(application),
    "query" -> putOrNull(query),
    "text" -> putOrNull(text))
}

private[lakelog] object UserStatement extends Companion[UserStatement] {
  override def of(json: JObject): UserStatement = UserStatement(
    take[String](json, "user"),
    take[String](json, "application"),
    takeIfAny[String](json, "query"),
    takeIfAny[String](json, "text"))
}
