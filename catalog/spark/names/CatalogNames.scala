package org.apache.spark.sql.lakelog.names

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.wire

/** Names in a lakelog catalog as Spark has them and as Python takes them. */
private[lakelog] object CatalogNames {

  /** How requests name what Spark names so. */
  def about(ident: Identifier): wire.NamedObject =
    if (Locations.isPath(ident)) wire.NamedObject(location = Some(ident.name))
    else wire.NamedObject(identifier = Some(ident.namespace.toSeq :+ ident.name))

  /** The namespace of procedures, which users cannot create. */
  val SystemNamespace = "system"

  def isSystem(names: Array[String]): Boolean = names.toSeq == Seq(SystemNamespace)

  /** What kinds of names a table may be read at. */
  val Branch = "branch"
  val Tag = "tag"

  /** Kinds of failures that say that there is nothing of a name. */
  val Missing: Set[String] = Set("no-such-table", "no-such-namespace", "log-sealed")

  /** What stands before the last dot. */
  def tableOf(ident: Identifier): Identifier = Identifier.of(ident.namespace.init, ident.namespace.last)

  /** What Python names by these parts. */
  def identifier(parts: Seq[String]): Identifier = Identifier.of(parts.init.toArray, parts.last)
}
