// Written by scripts/wire from lakelog.spark.requests.base: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

private[lakelog] final case class Exists(exists: Boolean)
  extends Message {
  override def members: Members = List("exists" -> put(exists))
}

private[lakelog] object Exists extends Companion[Exists] {
  override def of(json: JObject): Exists = Exists(take[Boolean](json, "exists"))
}

/** It is done. */
private[lakelog] final case class Done()
  extends Message {
  override def members: Members = List()
}

private[lakelog] object Done extends Companion[Done] {
  override def of(json: JObject): Done = Done()
}

/** Whether there was anything to drop. */
private[lakelog] final case class Dropped(dropped: Boolean)
  extends Message {
  override def members: Members = List("dropped" -> put(dropped))
}

private[lakelog] object Dropped extends Companion[Dropped] {
  override def of(json: JObject): Dropped = Dropped(take[Boolean](json, "dropped"))
}

/** About the object at a name or a place, of which one is given. */
private[lakelog] final case class Named(identifier: Option[Seq[String]] = None, location: Option[String] = None)
  extends Message {
  override def members: Members = List("identifier" -> putIfAny(identifier), "location" -> putIfAny(location))
}

private[lakelog] object Named extends Companion[Named] {
  override def of(json: JObject): Named = Named(
    takeIfAny[Seq[String]](json, "identifier"),
    takeIfAny[String](json, "location"))
}

/** A tag or branch as a statement names it; with `kind` it has to be of that. */
private[lakelog] final case class NamedRef(name: String, kind: Option[String] = None)
  extends Message {
  override def members: Members = List("name" -> put(name), "kind" -> putIfAny(kind))
}

private[lakelog] object NamedRef extends Companion[NamedRef] {
  override def of(json: JObject): NamedRef = NamedRef(take[String](json, "name"), takeIfAny[String](json, "kind"))
}

/** The tag or branch that a loaded table is on. `kind` is `tag` or `branch`. */
private[lakelog] final case class Ref(name: String, id: String, kind: String)
  extends Message {
  override def members: Members = List("name" -> put(name), "id" -> put(id), "kind" -> put(kind))
}

private[lakelog] object Ref extends Companion[Ref] {
  override def of(json: JObject): Ref = Ref(
    take[String](json, "name"),
    take[String](json, "id"),
    take[String](json, "kind"))
}

/** The name that a table was loaded by, and the location of the namespace's log that this led through. */
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
 * A version of a table that the adapter has loaded. `past`: the user asked for that version. `step` counts the changes
 * of the transaction, where a table changes without a new version. One with `found_by` is changed only while it has
 * that name.
 */
private[lakelog] final case class LoadedTable(
    location: String,
    id: String,
    version: Long,
    past: Boolean,
    step: Long,
    ref: Option[Ref] = None,
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
    takeIfAny[Ref](json, "ref"),
    takeIfAny[FoundBy](json, "found_by"))
}

private[lakelog] final case class Possible(possible: Boolean)
  extends Message {
  override def members: Members = List("possible" -> put(possible))
}

private[lakelog] object Possible extends Companion[Possible] {
  override def of(json: JObject): Possible = Possible(take[Boolean](json, "possible"))
}

/** The user and the statement of a change; Python keeps of `text` what the catalog's settings say. */
private[lakelog] final case class Statement(
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

private[lakelog] object Statement extends Companion[Statement] {
  override def of(json: JObject): Statement = Statement(
    take[String](json, "user"),
    take[String](json, "application"),
    takeIfAny[String](json, "query"),
    takeIfAny[String](json, "text"))
}
