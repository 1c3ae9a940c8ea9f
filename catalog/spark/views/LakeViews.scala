package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JBool, JObject, JValue}

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog._

/**
 * The views of a catalog. They have their names in common with its tables, and their definitions stand in the logs of
 * namespaces, as Python keeps them.
 */
private[lakelog] trait LakeViews extends RelationCatalog { self: LakeCatalog =>

  override def loadTable(ident: Identifier): Table = loadRelation(ident) match {
    case table: Table => table
    case _ => throw new NoSuchTableException(named(ident))
  }

  override def listViews(names: Array[String]): Array[Identifier] =
    if (LakeCatalog.isSystem(names)) Array.empty
    else failures.namespace(names)(identifiers(ask("list_views", about(names)), "views"))

  /** One request for both. */
  override def listRelationSummaries(names: Array[String]): Array[TableSummary] =
    if (LakeCatalog.isSystem(names)) listTableSummaries(names)
    else failures.namespace(names) {
      val answer = ask("list_relations", about(names))
      def summaries(member: String, kind: String) = identifiers(answer, member).map(TableSummary.of(_, kind))
      summaries("tables", TableSummary.MANAGED_TABLE_TYPE) ++ summaries("views", TableSummary.VIEW_TABLE_TYPE)
    }

  override def viewExists(ident: Identifier): Boolean =
    !Locations.isPath(ident) && failures.view(ident)(Json.bool(ask("view_exists", about(ident)), "exists"))

  override def createView(ident: Identifier, view: View): View = define(ident, view, create = true, replace = false)

  override def replaceView(ident: Identifier, view: View): View = define(ident, view, create = false, replace = true)

  override def createOrReplaceView(ident: Identifier, view: View): View =
    define(ident, view, create = true, replace = true)

  private def define(ident: Identifier, view: View, create: Boolean, replace: Boolean): View = failures.view(ident) {
    refuseSystem(ident.namespace)
    if (Locations.isPath(ident)) throw Failures.invalid(s"A view is named, not placed: ${ident.name} is a path.")
    change(
      "define_view", about(ident), "view" -> ViewJson.of(view), "create" -> JBool(create), "replace" -> JBool(replace))
    view
  }

  override def dropView(ident: Identifier): Boolean =
    !Locations.isPath(ident) && failures.view(ident)(Json.bool(change("drop_view", about(ident)), "dropped"))

  override def renameView(from: Identifier, to: Identifier): Unit = {
    val target = withoutCatalog(from, to)
    failures.view(from) {
      try change("rename_view", about(from), "to" -> Json.texts(target.namespace :+ target.name))
      catch { case taken: LakelogFailure if Failures.isTaken(taken) => throw failures.ofView(taken, target) }
    }
  }

  private def identifiers(answer: JObject, member: String): Array[Identifier] =
    Json.list(answer, member).map { name: JValue =>
      val parts = Json.stringList(name).toArray
      Identifier.of(parts.init, parts.last)
    }.toArray
}
