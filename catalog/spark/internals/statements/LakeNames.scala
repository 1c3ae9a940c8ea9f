package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogManager, Identifier, LookupCatalog, TableCatalog}
import org.apache.spark.sql.lakelog.catalogs.{CatalogAccess, LakeCatalogs, SessionNamespaces}
import org.apache.spark.sql.lakelog.internals.seam.Functions
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.table.LakeTable

/** Which names lead into a lakelog catalog, by Spark's own rules, before Spark itself looks. */
private[lakelog] object LakeNames {

  private def state = SparkSession.active.sessionState

  private final class Names(override protected val catalogManager: CatalogManager) extends LookupCatalog {
    def isTable(parts: Seq[String]): Boolean = parts match {
      case CatalogAndIdentifier(session: SessionNamespaces, ident) => session.isOfLake(ident)
      case CatalogAndIdentifier(_: CatalogAccess, _) => true
      case _ => false
    }

    def isThere(parts: Seq[String]): Boolean = parts match {
      case CatalogAndIdentifier(catalog: TableCatalog, ident) => LakeCatalogs.of(catalog).exists(_.tableExists(ident))
      case _ => false
    }

    def isOfLake(parts: Seq[String]): Boolean = parts match {
      case CatalogAndIdentifier(catalog, _) => LakeCatalogs.of(catalog).nonEmpty
      case _ => false
    }

    def table(parts: Seq[String]): Option[LakeTable] = parts match {
      case CatalogAndIdentifier(catalog: TableCatalog, ident) if LakeCatalogs.of(catalog).isDefined =>
        try Some(catalog.loadTable(ident)).collect { case table: LakeTable => table }
        catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
      case _ => None
    }

    def namespace(parts: Seq[String]): Option[(CatalogAccess, Seq[String])] = parts match {
      case CatalogAndNamespace(catalog: CatalogAccess, names) => Some(catalog -> names)
      case _ => None
    }

    def tableCatalog(parts: Seq[String]): Option[(TableCatalog, Identifier)] = parts match {
      case CatalogAndIdentifier(catalog: TableCatalog, ident) if LakeCatalogs.of(catalog).isDefined =>
        Some(catalog -> ident)
      case _ => None
    }

    def find(parts: Seq[String]): Option[(CatalogAccess, Identifier)] = parts match {
      case CatalogAndIdentifier(catalog: CatalogAccess, ident) => Some(catalog -> ident)
      case _ => None
    }
  }

  /** The lakelog catalog and the name in it, for a name in a statement. */
  def find(parts: Seq[String]): Option[(CatalogAccess, Identifier)] =
    if (parts.length == 3 && isOfSystem(parts)) None else new Names(state.catalogManager).find(parts)

  /** The catalog that has, or could have, a lakelog table of that name, be it with tables of others beside. */
  def tableCatalog(parts: Seq[String]): Option[(TableCatalog, Identifier)] =
    new Names(state.catalogManager).tableCatalog(parts)

  /** The lakelog catalog and the namespace in it, for the name of a namespace in a statement. */
  def namespace(parts: Seq[String]): Option[(CatalogAccess, Seq[String])] =
    new Names(state.catalogManager).namespace(parts)

  /**
   * Whether it is, or could be, a lakelog table, if other extensions have the same statements: by ``delta.`/place` `` they
   * mean a place, in whatever catalog the session is.
   */
  def isTableOrPlace(parts: Seq[String]): Boolean = !isOthersPlace(parts) && isTable(parts)

  private def isOthersPlace(parts: Seq[String]): Boolean =
    parts.length == 2 && parts.last.contains("/") && !EntranceNames.isFormat(parts.head) &&
    !state.catalogManager.isCatalogRegistered(parts.head)

  /** Whether the name leads to a catalog of lakelog's, be it with tables of others beside. */
  def isOfLake(parts: Seq[String]): Boolean =
    !isOthersPlace(parts) && new Names(state.catalogManager).isOfLake(parts)

  /** Whether there is a lakelog table of that name. */
  def isThere(parts: Seq[String]): Boolean = new Names(state.catalogManager).isThere(parts)

  /** The lakelog table of that name, as a statement reads it, if there is one. */
  def table(parts: Seq[String]): Option[LakeTable] = new Names(state.catalogManager).table(parts)

  /** Whether it is, or could be, a lakelog table: the session catalog has others beside them. */
  def isTable(parts: Seq[String]): Boolean = new Names(state.catalogManager).isTable(parts)

  /**
   * The places where a function of that name would be looked for, in their order: within a view or a function, those of
   * its creation. None is one of Spark's own.
   */
  def functionPlaces(parts: Seq[String]): Seq[Option[(CatalogAccess, Identifier)]] = {
    val context = AnalysisContext.get
    val manager = state.catalogManager
    val names = new Names(manager)
    if (parts.length == 1) {
      Functions.places(manager).map(_ ++ parts).map(full => if (isOfSystem(full)) None else names.find(full))
    } else {
      val full =
        if (context.catalogAndNamespace.isEmpty || manager.isCatalogRegistered(parts.head)) parts
        else context.catalogAndNamespace.head +: parts
      Seq(if (isOfSystem(parts)) None else names.find(full))
    }
  }

  /** Whether it is a built-in or temporary function, which stand before those of catalogs. */
  def isFunctionOfSpark(name: String): Boolean =
    Functions.isBuiltin(state.catalog, name) || state.catalog.isTemporaryFunction(FunctionIdentifier(name))

  /** Whether it leads to Spark's own functions, of the session or all sessions. */
  def isOfSystem(parts: Seq[String]): Boolean = {
    val ofSystem = parts.length == 3 && parts.head.equalsIgnoreCase(CatalogManager.SYSTEM_CATALOG_NAME)
    val namespace = if (ofSystem) Some(parts(1)) else if (parts.length == 2) Some(parts.head) else None
    namespace.exists(name => Functions.SystemNamespaces.exists(name.equalsIgnoreCase))
  }
}
