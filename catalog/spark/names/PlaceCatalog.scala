package org.apache.spark.sql.lakelog.names

import org.apache.spark.sql.lakelog.internals.{Failures, SessionInternals}

/**
 * Which catalog a table is asked of that is named by its place alone: the one that the option `catalog` names, or the
 * current one if that is lakelog's, or the only one that is.
 *
 * The place decides what the table holds; the catalog, how to get there, and whose transaction is open. So if several
 * could be meant, none is guessed. One that shows the past is taken if it is named only.
 */
private[lakelog] object PlaceCatalog {

  private val Named = """spark\.sql\.catalog\.([^.]+)""".r

  def choose(wanted: Option[String]): String = {
    val settings = SessionInternals.settings
    val lakes =
      settings.collect { case (Named(name), className) if EntranceNames.isCatalog(className) => name }.toSeq.sorted
    wanted match {
      case Some(name) =>
        if (!lakes.contains(name))
          throw Failures.invalid(s"The catalog $name is not a lakelog catalog: ${known(lakes)}.")
        name
      case None =>
        val present = lakes.filterNot(name => settings.contains(s"spark.sql.catalog.$name.as-of"))
        val current = SessionInternals.currentCatalog
        if (lakes.contains(current)) current
        else present match {
          case Seq(only) => only
          case Seq() => throw Failures.invalid(
              s"A lakelog table is read and written through a catalog, and none can be chosen: ${known(lakes)}. " +
                s"Set spark.sql.catalog.<name>=${EntranceNames.Catalog} and its warehouse.")
          case several => throw Failures.invalid(
              s"Several catalogs could hold the table: ${several.mkString(", ")}. Name one with the option catalog, or " +
                "with USE.")
        }
    }
  }

  private def known(lakes: Seq[String]): String =
    if (lakes.isEmpty) "this session has no lakelog catalog" else s"the lakelog catalogs are ${lakes.mkString(", ")}"
}
