package org.apache.spark.sql.lakelog.session

import java.util.concurrent.atomic.AtomicReference

import scala.annotation.tailrec

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}
import org.apache.spark.sql.lakelog.bridge.Bridge
import org.apache.spark.sql.lakelog.internals.{Failures, LakelogFailure, SessionInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.plans.CachedTables
import org.apache.spark.sql.lakelog.procedures.{CallWithJobs, ProcedureDeclaration, ProcedureJobs}
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.refs.SessionBranch
import org.apache.spark.sql.lakelog.table.{Channel, ChannelSession, OpenTransaction}
import org.apache.spark.sql.lakelog.wire

/**
 * One catalog instance in one Spark session: the transaction that is open in it, and what its requests carry.
 *
 * A transaction lives in the Python process. It belongs to the session's statements from its begin to its end, whatever
 * thread they run in, but not to streaming queries, which outlive it.
 */
private[lakelog] final class LakeSession(
    plugin: CatalogPlugin, connect: () => Bridge, settings: () => Map[String, String]) extends ChannelSession
  with OwnTransactions {

  private def catalog = plugin.name
  private lazy val bridge = connect()
  private val settingsOfCatalog = settings()
  private val open = new AtomicReference[OpenTransaction]()

  // A session that forgets to end a transaction must not keep it in the Python process for ever.
  ProcessState.whenGone(this)(new AbandonedTransaction(open))

  @volatile private var commits: Seq[wire.CommitMade] = Nil

  override def committed(made: Seq[wire.CommitMade]): Unit = if (made.nonEmpty) commits = made

  /** Where the requests of the statement under way go. */
  def channel: Channel = {
    checkSettings()
    new Channel(bridge, this, current)
  }

  /**
   * Spark opens a catalog once in a session, and accepts other settings of it afterwards: `getOrCreate` returns the session
   * that runs. A statement that was written for the new warehouse must not go to the old one.
   */
  private def checkSettings(): Unit = {
    val now = settings()
    if (now != settingsOfCatalog) {
      val changed = (now.keySet ++ settingsOfCatalog.keySet).toSeq.sorted.flatMap { key =>
        val values = Seq(settingsOfCatalog, now).map(_.getOrElse(key, "not set"))
        Option.when(values.distinct.size > 1)(s"$key (then: ${values.head}, now: ${values.last})")
      }
      throw Failures.invalid(
        s"The catalog $catalog is open in this session, and its settings have changed since: ${changed.mkString(", ")}. A " +
          "session keeps the catalogs that it has opened: set them back, or use another name for the catalog, a " +
          "session of its own (newSession), or a new one after stop().")
    }
  }

  /** A streaming query is part of no transaction but those that it begins itself, for a batch of its own. */
  private def current: Option[OpenTransaction] =
    Option(open.get).filter(_.query == StatementInternals.streamingQuery)

  def isInTransaction: Boolean = current.isDefined

  override def statement: wire.UserStatement = StatementInternals.statement

  override def channelIn(transaction: OpenTransaction): Channel = new Channel(bridge, this, Some(transaction))

  /** Runs a procedure and returns the rows of its result, each a list of values. */
  def call(procedure: ProcedureDeclaration, arguments: wire.FreeJson, jobs: ProcedureJobs): Seq[Seq[wire.FreeJson]] = {
    if (procedure.changesRows)
      SessionBranch.refuseCall(procedure.name, catalog, wire.JsonValues.text(arguments, "table"))
    procedure.session match {
      case Some("begins") => begin(procedure, arguments)
      case Some("commits") => commit(procedure)
      case Some("rolls-back") => rollBack(procedure)
      case _ =>
        if (isInTransaction && !procedure.inTransaction) {
          throw Failures.unsupported(
            s"${procedure.name} is not part of a transaction: commit or roll back the open one first.")
        }
        val rows =
          if (procedure.asks) CallWithJobs.run(channel, ofProcedure(procedure.name, arguments), jobs)
          else run(channel, procedure.name, arguments, job = Some(jobs).filter(_ => procedure.hasJob))
        if (procedure.changes) CachedTables.refresh(plugin)
        rows
    }
  }

  private def begin(procedure: ProcedureDeclaration, arguments: wire.FreeJson): Seq[Seq[wire.FreeJson]] = synchronized {
    Option(open.get).foreach { transaction =>
      throw Failures.invalid(
        s"The transaction ${transaction.id} is open in this session already, and transactions do not nest: " +
          s"commit or roll it back first, with CALL $catalog.system.commit_transaction() or rollback_transaction().")
    }
    CachedTables.drop(plugin)
    val (transaction, rows) = begun(procedure.name, arguments)
    open.set(transaction)
    rows
  }

  /** Ends the transaction whatever its outcome, unless that is not known: then the same commit can be retried. */
  private def commit(procedure: ProcedureDeclaration): Seq[Seq[wire.FreeJson]] = synchronized {
    val transaction = opened
    try {
      val rows = committed(procedure.name, transaction)
      end()
      rows
    } catch {
      case failure: LakelogFailure =>
        if (!failure.outcomeUnknown) end()
        throw failure
    }
  }

  private def rollBack(procedure: ProcedureDeclaration): Seq[Seq[wire.FreeJson]] = synchronized {
    val transaction = opened
    if (transaction.token.nonEmpty) {
      throw Failures.invalid(
        s"Whether the commit of the transaction ${transaction.id} happened is not known, so it cannot be rolled back: " +
          s"retry CALL $catalog.system.commit_transaction() to find out.")
    }
    try {
      val rows = run(channelIn(transaction), procedure.name, wire.FreeJson.empty)
      transaction.deleteFiles()
      rows
    } finally end()
  }

  /** What Spark has cached inside is of the transaction only, as what it had cached before was not of it. */
  private def end(): Unit = {
    Option(open.getAndSet(null)).foreach(_.end())
    CachedTables.drop(plugin)
    changed()
  }

  private def opened: OpenTransaction = Option(open.get).getOrElse(throw Failures.invalid(
      s"No transaction is open in this session: begin one with CALL $catalog.system.begin_transaction()."))

  // ---- the transaction of one statement, which is not the session's

  override def beginStatement(): OpenTransaction = begun("begin_transaction", wire.JsonValues.nulls("isolation"))._1

  override def commitStatement(transaction: OpenTransaction): Unit =
    try committed("commit_transaction", transaction)
    finally {
      transaction.end()
      changed()
    }

  override def changed(): Unit = CachedTables.refreshOld(bridge)

  override def rollBackStatement(transaction: OpenTransaction): Unit =
    try {
      run(channelIn(transaction), "rollback_transaction", wire.FreeJson.empty)
      transaction.deleteFiles()
    } finally transaction.end()

  // ---- refreshes of materialized views

  val refreshes = new ViewRefreshes(this)

  override def postponesTruncation(catalog: String, ident: Identifier): Boolean = refreshes.begin(catalog, ident)

  // ---- asking

  private def begun(procedure: String, arguments: wire.FreeJson): (OpenTransaction, Seq[Seq[wire.FreeJson]]) = {
    checkSettings()
    val own = bridge.alone()
    try {
      val rows = run(new Channel(own, this, None), procedure, arguments)
      (new OpenTransaction(wire.JsonValues.text(rows.head.head), StatementInternals.streamingQuery, own), rows)
    } catch {
      case failed: Throwable =>
        own.end(isSound = false)
        throw failed
    }
  }

  /** By the token that is made before the commit is first requested, a retry finds out whether it happened. */
  private def committed(procedure: String, transaction: OpenTransaction): Seq[Seq[wire.FreeJson]] = {
    val own = channelIn(transaction)
    if (transaction.token.isEmpty) transaction.token = Some(own.ask(wire.TransactionToken()))
    run(own, procedure, wire.FreeJson.empty, transaction.token)
  }

  /**
   * Runs a procedure. A token that it needs to be retried is made here, unless there is one already. If it has a
   * job, Python says which, and gets its result with the call.
   */
  private def run(
      to: Channel, procedure: String, arguments: wire.FreeJson, token: Option[wire.Token] = None,
      job: Option[ProcedureJobs] = None): Seq[Seq[wire.FreeJson]] = {
    val call = ofProcedure(procedure, arguments)
    val once = token.orElse(if (to.isInTransaction) None else to.ask(wire.CallToken(call)).token)
    val result = job.flatMap(prepared(to, call, _, None))
    to.change(wire.CallProcedure(call, once, result,
        commits = if (procedure == LakeSession.LastCommit) commits else Nil)).rows
  }

  private def ofProcedure(procedure: String, arguments: wire.FreeJson): wire.ProcedureRequest =
    wire.ProcedureRequest(procedure, arguments, catalog, SessionInternals.currentNamespace(catalog))

  /** What came of the last of the jobs that the call needs first, of which there may be none. */
  @tailrec
  private def prepared(
      to: Channel, call: wire.ProcedureRequest, jobs: ProcedureJobs, before: Option[wire.AnyResult])
      : Option[wire.AnyResult] = {
    val next = to.ask(wire.CallPrepare(call, before))
    next.job match {
      case None => before
      case Some(job) =>
        val result = Some(jobs.run(job))
        if (next.again) prepared(to, call, jobs, result) else result
    }
  }
}

private[lakelog] object LakeSession {

  /** The procedure that shows what the session has committed last. */
  private val LastCommit = "last_commit"
}
