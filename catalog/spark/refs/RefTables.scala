package org.apache.spark.sql.lakelog.refs

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.LakelogFailure
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.wire

/**
 * Names like `lake.shop.orders.branch_trial` and `lake.shop.orders.tag_checked`: the table `lake.shop.orders` on a branch
 * or tag. As with [[MetadataTables]], what users have made of that name comes first.
 */
private[lakelog] object RefTables {

  private val Form = s"(?s)(${CatalogNames.Branch}|${CatalogNames.Tag})_(.+)".r

  private val Missing = CatalogNames.Missing

  /** The table whose branch or tag a name may mean, and which one that is. */
  def of(ident: Identifier): Option[(Identifier, wire.NamedRef)] = ident.name match {
    case Form(kind, name) if ident.namespace.nonEmpty =>
      Some(CatalogNames.tableOf(ident) -> wire.NamedRef(name, Some(kind)))
    case _ => None
  }

  /** Whether the parts of a name may be those of a branch. */
  def isBranch(name: Seq[String]): Boolean = name.length > 1 && name.last.startsWith(s"${CatalogNames.Branch}_")

  /** What `named` gives; if there is nothing of that name, the table on the branch or tag that `on` gives, if any. */
  def orElse[T](ident: Identifier, on: (Identifier, wire.NamedRef) => T)(named: => T): T =
    try named
    catch {
      case missing: LakelogFailure if Missing(missing.kind) =>
        of(ident).flatMap { case (table, ref) => ifThere(on(table, ref)) }.getOrElse(throw missing)
    }

  /** What `load` gives, if there is such a table, with such a branch or tag. */
  def ifThere[T](load: => T): Option[T] =
    try Some(load)
    catch {
      case none: LakelogFailure if Missing(none.kind) || none.kind == "no-such-ref" => None
    }

  /** What a text behind VERSION AS OF means: a number is a version, anything else the name of a tag or branch. */
  def version(text: String): Either[Long, String] = text.toLongOption.toLeft(text)
}
