package org.apache.spark.sql.lakelog.catalogs

import java.util.{Collections, Locale, Map => JMap}

import org.apache.spark.sql.catalyst.analysis.{NamespaceAlreadyExistsException, NonEmptyNamespaceException}
import org.apache.spark.sql.connector.catalog.{DelegatingCatalogExtension, Identifier, NamespaceChange, SupportsNamespaces, TableCatalog}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals, SessionInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.seam.{NewerStagingCatalog, NewerTableCatalog}
import org.apache.spark.sql.lakelog.names.CatalogNames

/**
 * The namespaces of the session catalog: its own databases, and those that only lakelog has, from other sessions.
 *
 * A database's comment, properties and location are the session catalog's. It has one level; of lakelog's deeper namespaces
 * it shows none, although the tables in them can be named.
 */
private[lakelog] abstract class SessionNamespaces extends DelegatingCatalogExtension with NewerStagingCatalog
  with NewerTableCatalog {

  /** The part of it that is lakelog's. */
  private[lakelog] def lake: CatalogAccess

  /** The session catalog's own tables. */
  private[lakelog] def tables: TableCatalog = delegate.asInstanceOf[TableCatalog]

  /** Whether lakelog has a table of that name. */
  private[lakelog] def isOfLake(ident: Identifier): Boolean

  private def databases: SupportsNamespaces = tables.asInstanceOf[SupportsNamespaces]

  private[lakelog] def isInSession(names: Array[String]): Boolean = names.length == 1 && databases.namespaceExists(names)

  /** The name that lakelog has for it, if it has it. */
  private def inLake(names: Array[String]): Option[Array[String]] =
    SessionNamespaces.spellings(names).find(lake.namespaceExists)

  /** What lakelog has in the namespace, if it has that. */
  private[lakelog] def ofLake[T](names: Array[String])(list: Array[String] => T): Option[T] = inLake(names).map(list)

  /** What the session catalog has in the namespace, if it has that. */
  private[lakelog] def ofSession[T](names: Array[String])(list: Array[String] => T): Option[T] =
    if (isInSession(names)) Some(list(names)) else None

  /** Makes a database of the session catalog a lakelog namespace, for a table that is to be created in it. */
  private[lakelog] def makeInLake(names: Array[String]): Unit = if (isInSession(names) && inLake(names).isEmpty) {
    try lake.createNamespace(names, Collections.emptyMap())
    catch { case _: NamespaceAlreadyExistsException => } // Another client was faster.
  }

  /** Makes a lakelog namespace a database of the session catalog. */
  private[lakelog] def makeInSession(names: Array[String]): Unit =
    if (names.length == 1 && !isInSession(names) && !CatalogNames.isSystem(names) && inLake(names).isDefined) {
      try databases.createNamespace(names, Collections.emptyMap())
      catch { case _: NamespaceAlreadyExistsException => }
    }

  override def listNamespaces(): Array[Array[String]] = {
    val own = databases.listNamespaces()
    val known = own.map(_.toSeq).toSet
    val others = lake.namespacesIfAny.filterNot { names =>
      SessionNamespaces.spellings(names).exists(spelling => known(spelling.toSeq))
    }
    (own ++ others).sortBy(_.mkString("."))
  }

  override def listNamespaces(names: Array[String]): Array[Array[String]] =
    if (names.isEmpty) listNamespaces()
    else if (isInSession(names) || inLake(names).isEmpty) databases.listNamespaces(names)
    else Array.empty

  override def namespaceExists(names: Array[String]): Boolean = isInSession(names) || inLake(names).isDefined

  override def loadNamespaceMetadata(names: Array[String]): JMap[String, String] =
    if (isInSession(names)) databases.loadNamespaceMetadata(names)
    else inLake(names).map(lake.loadNamespaceMetadata).getOrElse(databases.loadNamespaceMetadata(names))

  override def createNamespace(names: Array[String], properties: JMap[String, String]): Unit = {
    if (inLake(names).isDefined) throw new NamespaceAlreadyExistsException((lake.name +: names.toSeq).toArray)
    databases.createNamespace(names, properties)
  }

  override def alterNamespace(names: Array[String], changes: NamespaceChange*): Unit =
    if (isInSession(names)) databases.alterNamespace(names, changes: _*)
    else inLake(names) match {
      case Some(own) => lake.alterNamespace(own, changes: _*)
      case None => databases.alterNamespace(names, changes: _*)
    }

  /**
   * Drops it in both, lakelog's part first, which can be restored. The session catalog's part is in no transaction of
   * lakelog's, and would be gone whatever became of one.
   */
  override def dropNamespace(names: Array[String], cascade: Boolean): Boolean = {
    val database = isInSession(names)
    if (database && names.sameElements(databases.defaultNamespace)) return databases.dropNamespace(names, cascade)
    if (database && lake.isInTransaction) {
      throw Failures.unsupported(
        s"${SchemaInternals.quoted(names.toSeq)} is a database of the session catalog, which is not part of a transaction: " +
          "commit or roll back the open one first.")
    }
    if (database && !cascade && tables.listTables(names).exists(_.namespace.nonEmpty)) {
      throw new NonEmptyNamespaceException((lake.name +: names.toSeq).toArray)
    }
    val dropped = inLake(names).exists(lake.dropNamespace(_, cascade))
    (database && databases.dropNamespace(names, cascade)) || dropped
  }
}

private[lakelog] object SessionNamespaces {

  /** The session's catalog, if it is lakelog's. */
  def active: Option[SessionNamespaces] =
    Some(SessionInternals.sessionCatalog).collect { case lake: SessionNamespaces => lake }

  def folded(ident: Identifier): Identifier =
    Identifier.of(ident.namespace.map(_.toLowerCase(Locale.ROOT)), ident.name.toLowerCase(Locale.ROOT))

  /** As it is written, and in the session catalog's small letters. */
  def spellings(names: Array[String]): Seq[Array[String]] = {
    val small = names.map(_.toLowerCase(Locale.ROOT))
    if (names.sameElements(small) || SettingInternals.isCaseSensitive) Seq(names) else Seq(names, small)
  }
}
