package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.catalyst.analysis.{CurrentNamespace, NoSuchNamespaceException, NoSuchTableException, ResolvedPersistentView, ResolvedTable, UnresolvedIdentifier, UnresolvedNamespace, UnresolvedTableOrView, UnresolvedView}
import org.apache.spark.sql.catalyst.plans.logical.{AlterViewAs, AlterViewSchemaBinding, CreateView, DropView, LogicalPlan, RenameTable, SetViewProperties, ShowViews, UnsetViewProperties}
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{ErrorInternals, LakelogException, SchemaInternals, SessionInternals}
import org.apache.spark.sql.lakelog.internals.seam.View
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.lakelog.show.UnreadableTable

/** A view that a statement names. */
private[lakelog] final case class FoundView(catalog: CatalogAccess, ident: Identifier, view: View) {
  def name: String = SchemaInternals.quoted(catalog.named(ident))
}

/** The statements about views, which this Spark has for its session catalog only, as commands on a lakelog catalog. */
private[lakelog] object ViewStatements extends EarlyRewrite {

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case CreateView(Named(catalog, ident), columns, comment, _, properties, Some(text), query, ifNotExists, replace,
          mode) =>
      CreateLakeView(
        catalog, ident, StatedView(text, columns, comment, properties, mode.toString), query, ifNotExists, replace)
    case AlterViewAs(Existing(view), text, query) => AlterLakeViewAs(view, text, query)
    case SetViewProperties(Existing(view), properties) =>
      AlterLakeView(view, view.view.schemaMode, set = properties, unset = Nil)
    case UnsetViewProperties(Existing(view), keys, _) =>
      AlterLakeView(view, view.view.schemaMode, set = Map.empty, unset = keys)
    case AlterViewSchemaBinding(Existing(view), mode) =>
      AlterLakeView(view, mode.toString, set = Map.empty, unset = Nil)
    case rename: RenameTable if rename.isView =>
      Renamed.unapply(rename.child).fold[LogicalPlan](rename)(RenameLakeView(_, rename.newName))
    case DropView(Named(catalog, ident), ifExists) => DropLakeView(catalog, ident, ifExists)
    case ShowViews(Namespace(catalog, names), pattern, output) => ShowLakeViews(catalog, names, pattern, output)
    case named @ UnresolvedTableOrView(parts, command, _)
        if command.startsWith("Catalog.") && !ViewPlans.isTemporary(parts) =>
      LakeNames.find(parts).fold[LogicalPlan](named) { case (catalog, ident) => ofSession(catalog, ident, named) }
  }

  /** What `spark.catalog` lists of a name: Spark finds no views, and no table that cannot be read. */
  private def ofSession(catalog: CatalogAccess, ident: Identifier, named: UnresolvedTableOrView): LogicalPlan =
    try catalog.loadRelation(ident) match {
        case view: View => ResolvedPersistentView(catalog, ident, ViewPlans.described(catalog, ident, view))
        case _ => named
      }
    catch {
      case _: NoSuchTableException | _: NoSuchNamespaceException => named
      case why: LakelogException if named.commandName == "Catalog.makeTable" =>
        ResolvedTable.create(catalog, ident, new UnreadableTable(ident, why))
    }

  private object Named {
    def unapply(name: LogicalPlan): Option[(CatalogAccess, Identifier)] = name match {
      case UnresolvedIdentifier(parts, allowTemporary) if !(allowTemporary && ViewPlans.isTemporary(parts)) =>
        LakeNames.find(parts)
      case _ => None
    }
  }

  /** A view that has to be there. */
  private object Existing {
    def unapply(name: LogicalPlan): Option[FoundView] = name match {
      case UnresolvedView(parts, command, _, _) => existing(parts, command)
      case _ => None
    }
  }

  private object Renamed {
    def unapply(name: LogicalPlan): Option[FoundView] = name match {
      case UnresolvedTableOrView(parts, command, _) => existing(parts, command)
      case _ => None
    }
  }

  private def existing(parts: Seq[String], command: String): Option[FoundView] =
    if (ViewPlans.isTemporary(parts)) None
    else LakeNames.find(parts).map { case (catalog, ident) =>
      catalog.loadRelation(ident) match {
        case view: View => FoundView(catalog, ident, view)
        case _: Table => throw ErrorInternals.viewNeeded(catalog.named(ident), command)
        case _ => throw new NoSuchTableException(catalog.named(ident))
      }
    }

  private object Namespace {
    def unapply(plan: LogicalPlan): Option[(CatalogAccess, Seq[String])] = plan match {
      case UnresolvedNamespace(parts, _) => LakeNames.namespace(parts)
      case CurrentNamespace =>
        LakeNames.namespace(
          SessionInternals.currentCatalog +: SessionInternals.currentNamespace(SessionInternals.currentCatalog))
      case _ => None
    }
  }
}
