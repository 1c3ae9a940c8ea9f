package org.apache.spark.sql.lakelog

import java.lang.ref.Cleaner
import java.util.concurrent.atomic.AtomicReference

import org.json4s.JsonAST.{JArray, JObject, JString, JValue}

import org.apache.spark.sql.connector.catalog.CatalogPlugin

/**
 * One catalog instance in one Spark session: the transaction that is open in it, and what its requests carry.
 *
 * A transaction lives in the Python process. It belongs to the session's statements from its begin to its end, whatever
 * thread they run in, but not to streaming queries, which outlive it.
 */
private[lakelog] final class LakeSession(plugin: CatalogPlugin, connect: () => Bridge) {

  private def catalog = plugin.name
  private lazy val bridge = connect()
  private val open = new AtomicReference[OpenTransaction]()

  // Whoever forgets to end a transaction must not keep it in the Python process for ever.
  LakeSession.cleaner.register(this, new LakeSession.Abandoned(open, connect))

  /** Where the requests of the statement under way go. */
  def channel: Channel = {
    val transaction = Option(open.get).filterNot(_ => SparkInternals.isStreaming)
    new Channel(bridge, this, transaction.map(_.id))
  }

  def isInTransaction: Boolean = open.get != null

  /** Who wants the change that the statement under way asks for, and by which words, as its commit will tell. */
  def statement: JObject = SparkInternals.statement

  /** Runs a procedure and returns the rows of its result, each a list of values. */
  def call(procedure: ProcedureDeclaration, arguments: JObject): List[JValue] = procedure.session match {
    case Some("begins") => begin(procedure, arguments)
    case Some("commits") => commit(procedure, arguments)
    case Some("rolls-back") => rollBack(procedure, arguments)
    case _ =>
      if (isInTransaction && !procedure.inTransaction) {
        throw Failures.unsupported(
          s"${procedure.name} is not part of a transaction: commit or roll back the open one first.")
      }
      run(channel, procedure, arguments, None)
  }

  private def begin(procedure: ProcedureDeclaration, arguments: JObject): List[JValue] = synchronized {
    Option(open.get).foreach { transaction =>
      throw Failures.invalid(
        s"The transaction ${transaction.id} is open in this session already, and transactions do not nest: " +
          s"commit or roll it back first, by CALL $catalog.system.commit_transaction() or rollback_transaction().")
    }
    val rows = run(new Channel(bridge, this, None), procedure, arguments, None)
    SparkInternals.uncache(plugin)
    rows match {
      case JArray(JString(id) :: _) :: Nil => open.set(new OpenTransaction(id))
      case other => throw new IllegalStateException(s"Python began a transaction without an id: $other")
    }
    rows
  }

  /**
   * Commits, and ends the transaction whatever comes of it, unless that is not known: then the same commit can be asked
   * for again, and the token made before it was first asked for tells whether it has happened.
   */
  private def commit(procedure: ProcedureDeclaration, arguments: JObject): List[JValue] = synchronized {
    val transaction = opened
    val own = new Channel(bridge, this, Some(transaction.id))
    try {
      if (transaction.token.isEmpty) transaction.token = Some(own.call("transaction_token", JObject(Nil)))
      val rows = run(own, procedure, arguments, transaction.token)
      end()
      rows
    } catch {
      case failure: LakelogFailure =>
        if (!failure.outcomeUnknown) end()
        throw failure
    }
  }

  private def rollBack(procedure: ProcedureDeclaration, arguments: JObject): List[JValue] = synchronized {
    val own = new Channel(bridge, this, Some(opened.id))
    end()
    run(own, procedure, arguments, None)
  }

  /** What Spark has cached inside is of the transaction only, as what it had cached before was not of it. */
  private def end(): Unit = {
    open.set(null)
    SparkInternals.uncache(plugin)
  }

  private def opened: OpenTransaction = Option(open.get).getOrElse(throw Failures.invalid(
    s"No transaction is open in this session: begin one by CALL $catalog.system.begin_transaction()."))

  private def run(
      to: Channel, procedure: ProcedureDeclaration, arguments: JObject, token: Option[JObject]): List[JValue] = {
    val asked = Json.obj(
      "procedure" -> JString(procedure.name),
      "arguments" -> arguments,
      "catalog_name" -> JString(catalog),
      "current_namespace" -> Json.texts(SparkInternals.currentNamespace(catalog)),
      "token" -> token.getOrElse(to.call("token", Json.obj("namespace" -> Json.texts(Nil)))))
    Json.list(to.change("call", asked), "rows")
  }
}

/** A transaction of the session; `token` is made before its commit is first asked for. */
private[lakelog] final class OpenTransaction(val id: String) {
  @volatile var token: Option[JObject] = None
}

private[lakelog] object LakeSession {

  private val cleaner = Cleaner.create()

  /** Rolls back what a session left open that nobody can reach any more. It must not know the session itself. */
  private final class Abandoned(open: AtomicReference[OpenTransaction], connect: () => Bridge) extends Runnable {
    override def run(): Unit = Option(open.getAndSet(null)).foreach { transaction =>
      try connect().call("abandon_transaction", Json.obj("transaction" -> JString(transaction.id)))
      catch { case _: LakelogFailure => } // The process that held it is gone, and the transaction with it.
    }
  }
}

/**
 * Where requests go: to Python, as part of the transaction in which their subject was loaded, or of none.
 *
 * Immutable, so that a table stays in the transaction that it was loaded in, whatever the session does later.
 */
private[lakelog] final class Channel(bridge: Bridge, session: LakeSession, val transaction: Option[String]) {

  /** Asks a question that changes nothing. */
  def call(method: String, params: JObject): JObject = ask(method, params).json

  def ask(method: String, params: JObject): Answer = bridge.ask(method, scoped(params))

  /** Asks for a change, and tells who wants it, by which statement. */
  def change(method: String, params: JObject): JObject =
    bridge.call(method, Json.merge(scoped(params), "query" -> session.statement))

  private def scoped(params: JObject): JObject =
    transaction.fold(params)(id => Json.merge(params, "transaction" -> JString(id)))
}
