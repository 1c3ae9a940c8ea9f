package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JInt, JObject, JString, JValue}

import org.apache.spark.sql.connector.catalog.Identifier

/**
 * Names like `lake.shop.orders.branch_trial` and `lake.shop.orders.tag_checked`: the table `lake.shop.orders` on a branch
 * or tag. As with [[MetadataTables]], what users have made of that name comes first.
 */
private[lakelog] object RefTables {

  val Branch = "branch"
  val Tag = "tag"

  private val Form = s"(?s)($Branch|$Tag)_(.+)".r

  private val Missing = MetadataTables.Missing

  /** The table whose branch or tag a name may mean, and which one that is, as Python takes it. */
  def of(ident: Identifier): Option[(Identifier, JObject)] = ident.name match {
    case Form(kind, name) if ident.namespace.nonEmpty =>
      Some(MetadataTables.tableOf(ident) -> Json.obj("kind" -> JString(kind), "name" -> JString(name)))
    case _ => None
  }

  /** What `named` gives; where there is nothing of that name, the table on the branch or tag that `on` gives, if any. */
  def orElse[T](ident: Identifier, on: (Identifier, JObject) => T)(named: => T): T =
    try named catch {
      case missing: LakelogFailure if Missing(missing.kind) =>
        of(ident).flatMap { case (table, ref) => ifThere(on(table, ref)) }.getOrElse(throw missing)
    }

  /** What `load` gives, if there is such a table, with such a branch or tag. */
  def ifThere[T](load: => T): Option[T] =
    try Some(load) catch {
      case none: LakelogFailure if Missing(none.kind) || none.kind == "no-such-ref" => None
    }

  /** What a text behind VERSION AS OF means: a number is a version, anything else the name of a tag or branch. */
  def version(text: String)(named: String => (String, JValue)): JObject = {
    val number = text.toLongOption.map(number => "version" -> JInt(number))
    Json.obj(number.getOrElse(named(text)))
  }
}
