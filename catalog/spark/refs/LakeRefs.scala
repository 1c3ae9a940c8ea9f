package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.catalog.Identifier

/** A catalog's part in tags and branches, where they are named as if they were tables. */
private[lakelog] trait LakeRefs { self: LakeCatalog =>

  /** The table `of` on a tag or branch, which `ident` names, as it is or was `past`. */
  private[lakelog] def onRef(asked: Channel, ident: Identifier, past: wire.Named => wire.LoadTable = wire.LoadTable(_))(
      of: Identifier, ref: wire.NamedRef): LakeTable = {
    val wanted = past(about(of))
    if (wanted.on.isDefined) throw Failures.invalid(
      s"${SchemaInternals.quoted(named(ident))} is on a tag or branch already: name it once.")
    table(ident, asked, asked.ask(wanted.copy(on = Some(ref))))
  }

  private[lakelog] def isOnRef(ident: Identifier): Boolean =
    RefTables.of(ident).exists { case (of, ref) => RefTables.ifThere(onRef(channel, ident)(of, ref)).isDefined }

  /**
   * Runs a change of what `ident` names as a whole. Where that is not a table, but a tag or branch of one, or would be, the
   * message says what to do `instead`.
   */
  private[lakelog] def ofWhole[T](ident: Identifier, instead: String)(change: => T): T =
    try change
    catch {
      case missing: LakelogFailure if MetadataTables.Missing(missing.kind) =>
        refuseRef(ident, instead)
        throw missing
    }

  private[lakelog] def refuseRef(ident: Identifier, instead: String): Unit = for {
    (of, ref) <- RefTables.of(ident)
    if ask(wire.TableExists(about(of))).exists
  } throw Failures.unsupported(
    s"${SchemaInternals.quoted(named(ident))} names a ${ref.kind.get} of the table " +
      s"${SchemaInternals.quoted(named(of))}, which $instead")
}
