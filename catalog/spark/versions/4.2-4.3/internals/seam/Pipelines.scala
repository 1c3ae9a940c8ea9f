package org.apache.spark.sql.lakelog.internals.seam

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.pipelines.graph.{GraphRegistrationContext, Table}

/** What a run of Spark's declarative pipelines does in this thread. Spark has no interface that says so. */
private[lakelog] object Pipelines {

  /** Whether it prepares the tables that the run will write: creates them, empties them, or changes their columns. */
  def isPreparing: Boolean = isWithin("org.apache.spark.sql.pipelines.graph.DatasetManager")

  /** Whether it writes the rows of a materialized view. */
  def isFillingView: Boolean = isWithin("org.apache.spark.sql.pipelines.graph.BatchTableWrite")

  private def isWithin(name: String): Boolean = StackWalker.getInstance.walk(
    _.anyMatch(frame => frame.getClassName == name || frame.getClassName.startsWith(s"$name$$")))

  /**
   * Whether each pipeline that declares the table declares it as a materialized view, and at least one does.
   *
   * A run empties a streaming table in the same way, and its rows come from other sessions then. So the answer is no if that is
   * not known.
   */
  def isView(catalog: String, ident: Identifier): Boolean = {
    val declared = declarations.filter(table => isNamed(table.identifier, catalog, ident))
    declared.nonEmpty && !declared.exists(_.isStreamingTable)
  }

  private def isNamed(name: TableIdentifier, catalog: String, ident: Identifier): Boolean =
    name.catalog.contains(catalog) && name.database.toSeq == ident.namespace.toSeq && name.table == ident.name

  /** The tables of all pipelines that clients have declared to this server. Only Spark Connect's own package may ask it. */
  private def declarations: Seq[Table] =
    try {
      val service = Class.forName("org.apache.spark.sql.connect.service.SparkConnectService$")
      val sessions = asked(service.getField("MODULE$").get(null), "sessionManager")
      for {
        session <- asked(sessions, "listActiveSessions").asInstanceOf[Seq[AnyRef]]
        holder <-
          asked(sessions, "getIsolatedSessionIfPresent", asked(session, "key")).asInstanceOf[Option[AnyRef]].toSeq
        graph <- asked(asked(holder, "dataflowGraphRegistry"), "getAllDataflowGraphs").asInstanceOf[Seq[AnyRef]]
        table <- asked(graph.asInstanceOf[GraphRegistrationContext], "tables").asInstanceOf[Iterable[Table]]
      } yield table
    } catch {
      case NonFatal(_) | _: LinkageError => Nil
    }

  private def asked(subject: AnyRef, method: String, arguments: AnyRef*): AnyRef =
    subject.getClass.getMethods.find(found => found.getName == method && found.getParameterCount == arguments.size)
      .getOrElse(throw new NoSuchMethodException(method)).invoke(subject, arguments: _*)
}
