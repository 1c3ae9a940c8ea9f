package org.apache.spark.sql.lakelog.names

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.{Failures, SessionInternals}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The name of a table that a reader's `load` or a writer's `save` gave by its place.
 *
 * In the session catalog it is lakelog.`/path`, as Spark has parquet.`/path`: there every name has to have a namespace.
 */
private[lakelog] final case class SavedPlace(name: String, ofSession: Boolean) extends Identifier {
  override def namespace: Array[String] = if (ofSession) Array(EntranceNames.Format) else Array.empty
  override def toString: String = name
}

private[lakelog] object SavedPlace {

  def of(options: CaseInsensitiveStringMap): SavedPlace = {
    val path = Option(options.get("path")).getOrElse(throw Failures.invalid(
        if (options.containsKey("paths"))
          "A lakelog table has one path, but several are given: load each and unite them."
        else
          "The path of the lakelog table is missing: give it to load or save. Read a table with a name by spark.table, " +
            "and write it by saveAsTable, insertInto or writeTo."))
    if (!Locations.isAbsolute(path)) {
      throw Failures.invalid(
        s"'$path' is neither an absolute path nor a url. Read a table with a name with spark.table, and write it " +
          "with saveAsTable, insertInto or writeTo.")
    }
    val catalog = PlaceCatalog.choose(Option(options.get("catalog")))
    SavedPlace(path, ofSession = catalog == SessionInternals.CatalogName)
  }

  /** The name of a place as a catalog that is lakelog's alone has it; others stay as they are. */
  def ofCatalog(ident: Identifier): Identifier = ident match {
    case place: SavedPlace => place.copy(ofSession = false)
    case other if Locations.isAbsolute(other.name) && isOfFormat(other.namespace) =>
      Identifier.of(Array.empty, other.name)
    case other => other
  }

  /**
   * Refuses to write to a place by a catalog that the rows' session would not have taken: Spark asks for one in whatever
   * session the thread has, and runs the statement in that of the rows.
   */
  def checkCatalog(ident: Identifier, taken: String, options: CaseInsensitiveStringMap): Unit = ident match {
    case place: SavedPlace if !options.containsKey("catalog") =>
      val own = PlaceCatalog.choose(None)
      if (own != taken) throw Failures.invalid(
        s"The rows for $place are from a session whose catalog is $own, but Spark chose $taken, the catalog of another " +
          "session in use: name the catalog with the option catalog.")
    case _ =>
  }

  private def isOfFormat(namespace: Array[String]): Boolean =
    namespace.length == 1 && namespace.head.equalsIgnoreCase(EntranceNames.Format)
}
