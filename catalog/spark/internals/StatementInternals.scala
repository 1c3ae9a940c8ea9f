package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.catalyst.{CurrentUserContext, QueryPlanningTracker}
import org.apache.spark.sql.catalyst.plans.logical.{AlterTableCommand, LogicalPlan, ShowTablesExtended}
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.execution.command.ExplainCommand
import org.apache.spark.sql.lakelog.internals.seam.{Statements, Streams}
import org.apache.spark.sql.lakelog.wire

/** One of lakelog's own commands that changes a schema. */
private[lakelog] trait SchemaCommand

/** The statement that this thread analyses, optimises or executes, on the driver: which one it is, and its words. */
private[lakelog] object StatementInternals {

  private def session: SparkSession = SparkSession.active

  /** What stands for the statement that this thread analyses or optimises. */
  def tracker: Option[AnyRef] = QueryPlanningTracker.get

  /**
   * Whether a schema is changed by the analysis of a statement, for data to follow, rather than by an ALTER TABLE: that
   * is executed, be it within the analysis of an EXECUTE IMMEDIATE.
   */
  def isEvolution: Boolean =
    tracker.isDefined && !running.exists(_.logical match {
      case _: AlterTableCommand | _: SchemaCommand => true
      case _ => false
    })

  /** Whether this thread explains a statement, which it does not execute then. */
  def isExplained: Boolean = running.exists(_.logical.isInstanceOf[ExplainCommand])

  /** The command that this thread executes. */
  def running: Option[QueryExecution] =
    Option(session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
      .flatMap(id => Option(SQLExecution.getQueryExecution(id.toLong)))

  /** The tables that the command reads which this thread executes. */
  def tablesRead: Seq[Table] = running.toSeq.flatMap(_.logical.collectWithSubqueries {
    case PlanInternals.TableOf(table) => table
  })

  /** Whether this thread executes a SHOW TABLE EXTENDED, which loads every table that it shows. */
  def isShowingTables: Boolean = running.exists(_.logical.isInstanceOf[ShowTablesExtended])

  /** Whether this thread runs a streaming query. */
  def isStreaming: Boolean = streamingQuery.isDefined

  /** The id of the streaming query that this thread runs. */
  def streamingQuery: Option[String] =
    SparkSession.getActiveSession.flatMap(s => Option(s.sparkContext.getLocalProperty(Streams.QueryId)))

  /**
   * The user of the statement under way, and its text if it has any.
   *
   * A command runs under the id of its execution, which leads to its plan; a CALL runs while it is analysed, when its
   * words are those of the tree node at hand.
   */
  def statement: wire.UserStatement = {
    val context = session.sparkContext
    val query = Statements.queryId(context)
    val text = running.map(query => words(query.logical)).getOrElse(CurrentOrigin.get.sqlText)
      .orElse(running.map(query => s"DataFrame: ${query.logical.nodeName}"))
    // A server runs statements of many users, and says so as `current_user()` does.
    val user = Option(CurrentUserContext.CURRENT_USER.get).getOrElse(context.sparkUser)
    wire.UserStatement(
      user, s"${context.appName} ${context.applicationId}", query, text.map(_.take(StatementLimit)))
  }

  /**
   * The text of a command: its plan keeps it, or a part of it if Spark has rebuilt the plan. The part may also be a
   * query of another statement, which a DataFrame writes to the table.
   */
  private def words(command: LogicalPlan): Option[String] = {
    val parts = command.children ++ command.innerChildren.collect { case part: LogicalPlan => part }
    own(command.origin).orElse(parts.flatMap(_.collectFirst(Function.unlift(part => creation(part.origin)))).headOption)
  }

  /** A statement of a script has the text of the whole script, and its place in it. */
  private def own(origin: Origin): Option[String] = origin.sqlText.map { text =>
    if (isScript(text)) new ScriptText(text, tokens(text)).statementFrom(origin.startIndex.getOrElse(0)) else text
  }

  /** The statement that creates a table of the query which is there. */
  private def creation(origin: Origin): Option[String] = origin.sqlText.flatMap { text =>
    if (isScript(text)) new ScriptText(text, tokens(text)).creationAround(origin.startIndex.getOrElse(0))
    else Some(text).filter(ScriptText.beginsWith(_, Set("create", "replace")))
  }

  private def isScript(text: String): Boolean = ScriptText.beginsWith(text, Set("begin"))

  private def tokens(text: String): IndexedSeq[ScriptText.Token] = SqlTokens.of(text) { (lexer, token) =>
    ScriptText.Token(lexer.getVocabulary.getSymbolicName(token.getType), token.getStartIndex)
  }

  /** Python keeps less, and a statement may hold millions of values. */
  private val StatementLimit = 256 * 1024
}
