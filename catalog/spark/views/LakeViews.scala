package org.apache.spark.sql.lakelog.views

import java.lang.ref.WeakReference
import java.util.WeakHashMap

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{Failures, LakelogFailure, SchemaInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Tables, TableSummary, View}
import org.apache.spark.sql.lakelog.names.{CatalogNames, Locations}
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.wire

/**
 * The views of a catalog. They have their names in common with its tables, and their definitions stand in the logs of
 * namespaces, as Python keeps them.
 */
private[lakelog] trait LakeViews extends CatalogAccess {

  override def loadTable(ident: Identifier): Table = loadRelation(ident) match {
    case table: Table => table
    case _ => throw new NoSuchTableException(named(ident))
  }

  override def listViews(names: Array[String]): Array[Identifier] =
    if (CatalogNames.isSystem(names)) Array.empty
    else failures.namespace(names)(ask(wire.ListViews(names.toSeq)).views.map(CatalogNames.identifier).toArray)

  /** One request for both. */
  override def listRelationSummaries(names: Array[String]): Array[TableSummary] =
    if (CatalogNames.isSystem(names)) listTableSummaries(names)
    else failures.namespace(names) {
      val found = ask(wire.ListRelations(names.toSeq, shown))
      def summaries(names: Seq[Seq[String]], kind: String) =
        names.map(name => Tables.summary(CatalogNames.identifier(name), kind))
      val all =
        summaries(found.tables, Tables.Managed) ++ summaries(found.views, Tables.OfView)
      all.sortBy(_.identifier.name).toArray
    }

  override def viewExists(ident: Identifier): Boolean =
    !Locations.isPath(ident) && failures.view(ident)(ask(wire.LookUpView(parts(ident))).exists)

  override def createView(ident: Identifier, view: View): View = define(ident, view, create = true, replace = false)

  override def replaceView(ident: Identifier, view: View): View = define(ident, view, create = false, replace = true)

  override def createOrReplaceView(ident: Identifier, view: View): View =
    define(ident, view, create = true, replace = true)

  private def define(ident: Identifier, view: View, create: Boolean, replace: Boolean): View = failures.view(ident) {
    refuseSystem(ident.namespace)
    if (Locations.isPath(ident))
      throw Failures.invalid(s"Views cannot be created at a path: replace ${ident.name} by a name.")
    refuseRoot(ident)
    EvolvingViews.check(Option(view.schemaMode), SchemaInternals.quoted(named(ident)))
    val before = if (create) None else LoadedViews.ofThread(inSession).of(ident)
    if (before.exists(_.text != view.queryText)) ViewCycles.check(named(ident), view)
    channel.changeOnce(wire.DefineView(
        parts(ident), view = ViewDefinitions.of(view, name), create = create, replace = replace, expected = before))
    view
  }

  /**
   * Returns a view to Spark, and keeps how it was: an ALTER VIEW is made of the view that its analysis loaded, and is
   * refused if that has changed since, as the change of another client would be lost.
   */
  private[lakelog] def loadedView(ident: Identifier, definition: wire.ViewDefinition): View = {
    EvolvingViews.check(definition.schemaMode, SchemaInternals.quoted(named(ident)))
    StatementInternals.tracker.foreach { statement =>
      LoadedViews.setOfThread(inSession, LoadedViews.ofThread(inSession).in(statement).and(ident, definition))
    }
    ViewDefinitions.toSpark(definition, name)
  }

  override def dropView(ident: Identifier): Boolean =
    !Locations.isPath(ident) && failures.view(ident)(channel.changeOnce(wire.DropView(parts(ident))).dropped)

  override def renameView(from: Identifier, to: Identifier): Unit = {
    val target = withoutCatalog(to)
    refuseRoot(target)
    failures.view(from) {
      try channel.changeOnce(wire.RenameView(parts(from), to = parts(target)))
      catch { case refused: LakelogFailure if Failures.isOfTarget(refused) => throw failures.ofView(refused, target) }
    }
  }

  private def refuseRoot(ident: Identifier): Unit = if (ident.namespace.isEmpty) throw Failures.unsupported(
    s"Spark cannot read a view outside of a namespace: create ${ident.name} in one.")

  private def parts(ident: Identifier): Seq[String] = ident.namespace.toSeq :+ ident.name
}

/** Views as they were when they were first loaded for a statement. */
private[lakelog] final case class LoadedViews(statement: WeakReference[AnyRef],
    views: Map[Identifier, wire.ViewDefinition]) {

  def in(now: AnyRef): LoadedViews =
    if (statement.get eq now) this else LoadedViews(new WeakReference(now), Map.empty)

  def and(ident: Identifier, view: wire.ViewDefinition): LoadedViews =
    if (views.contains(ident)) this else copy(views = views.updated(ident, view))

  def of(ident: Identifier): Option[wire.ViewDefinition] = views.get(ident)
}

private[lakelog] object LoadedViews {
  private val empty = LoadedViews(new WeakReference[AnyRef](null), Map.empty)
  private val slot = new ProcessState.Slot(() => new WeakHashMap[AnyRef, LoadedViews]())

  /** What this thread loaded first of each view of the catalog, for the statement that it analysed last. */
  def ofThread(catalog: AnyRef): LoadedViews = ProcessState.ofThread(slot).getOrDefault(catalog, empty)

  def setOfThread(catalog: AnyRef, views: LoadedViews): Unit = {
    ProcessState.ofThread(slot).put(catalog, views)
    ()
  }
}
