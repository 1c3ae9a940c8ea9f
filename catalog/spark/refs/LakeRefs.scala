package org.apache.spark.sql.lakelog.refs

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{Failures, LakelogFailure, SchemaInternals}
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable}
import org.apache.spark.sql.lakelog.wire

/** A catalog's part in tags and branches, if they are named as if they were tables. */
private[lakelog] trait LakeRefs extends CatalogAccess {

  /** The table `of` on a tag or branch, which `ident` names, as it is or was `past`. */
  private[lakelog] def onRef(asked: Channel, ident: Identifier,
      past: wire.NamedObject => wire.LoadTable = wire.LoadTable(_))(
      of: Identifier, ref: wire.NamedRef): LakeTable = {
    val wanted = past(CatalogNames.about(of))
    if (wanted.on.isDefined) throw Failures.invalid(
      s"${SchemaInternals.quoted(named(ident))} is on a tag or branch already: name it once.")
    table(ident, asked, asked.ask(wanted.copy(on = Some(ref))))
  }

  private[lakelog] def isOnRef(ident: Identifier): Boolean =
    RefTables.of(ident).exists { case (of, ref) => RefTables.ifThere(onRef(channel, ident)(of, ref)).isDefined }

  /**
   * Runs a change of what `ident` names as a whole. If that is not a table, but a tag or branch of one, or would be, the
   * message says what to do `instead`.
   */
  private[lakelog] def ofWhole[T](ident: Identifier, instead: String)(change: => T): T =
    try change
    catch {
      case missing: LakelogFailure if CatalogNames.Missing(missing.kind) =>
        refuseRef(ident, instead)
        throw missing
    }

  private[lakelog] def refuseRef(ident: Identifier, instead: String): Unit = for {
    (of, ref) <- RefTables.of(ident)
    if ask(wire.LookUpTable(CatalogNames.about(of))).exists
  } throw Failures.unsupported(
    s"${SchemaInternals.quoted(named(ident))} names a ${ref.kind.get} of the table " +
      s"${SchemaInternals.quoted(named(of))}, which $instead")
}
