package org.apache.spark.sql.lakelog.catalogs

import org.apache.spark.sql.connector.catalog.{Identifier, SupportsNamespaces, Table, TableCatalog, TableChange}
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.seam.{NewerTableCatalog, RelationCatalog}
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable}
import org.apache.spark.sql.lakelog.wire

/** A lakelog catalog as statements, rules and the parts of the catalog itself know it. */
private[lakelog] trait CatalogAccess extends TableCatalog with RelationCatalog with NewerTableCatalog
  with SupportsNamespaces {

  private[lakelog] def failures: Failures

  /** Where the requests of the statement under way go. */
  private[lakelog] def channel: Channel

  private[lakelog] def ask[A](request: wire.Request[A]): A = channel.ask(request)

  /** What this catalog is in its session, and the same catalog within a statement. */
  private[lakelog] def inSession: AnyRef

  private[lakelog] def isInTransaction: Boolean

  /** A pattern that Spark will apply to what is listed: what it does not match need not be there. */
  private[lakelog] def shown: Option[String]

  /** The same catalog for a statement that lists what matches a pattern. */
  private[lakelog] def showing(pattern: String): CatalogAccess

  private[lakelog] def named(ident: Identifier): Seq[String] = name +: ident.namespace.toSeq :+ ident.name

  /** Those namespaces of the root; none in a warehouse that does not exist yet. */
  private[lakelog] def namespacesIfAny: Array[Array[String]]

  /** Objects of users in the namespace `system` would be hard to distinguish from lakelog's own. */
  private[lakelog] def refuseSystem(names: Array[String]): Unit =
    if (names.headOption.contains(CatalogNames.SystemNamespace)) {
      throw Failures.invalid(
        s"The namespace ${CatalogNames.SystemNamespace} of the catalog $name holds lakelog's own procedures and " +
          "tables, which cannot be changed: choose another name.")
    }

  /** In RENAME TO lake.a.t Spark takes the catalog's name for that of a namespace, which it is only if there is one. */
  private[lakelog] def withoutCatalog(to: Identifier): Identifier =
    if (to.namespace.headOption.contains(name) && !namespaceExists(to.namespace))
      Identifier.of(to.namespace.tail, to.name)
    else to

  /** The table that Python has described. */
  private[lakelog] def table(ident: Identifier, from: Channel, facts: wire.TableFacts): LakeTable

  private[lakelog] def failingAs[T](ident: Identifier)(ask: => T): T = failures.table(ident)(ask)

  /** `seen` is the version of the table, if any, whose rows were looked at for a change that needs that. */
  private[lakelog] def alter(ident: Identifier, changes: Seq[TableChange], seen: Option[wire.LoadedTable]): Table
}
