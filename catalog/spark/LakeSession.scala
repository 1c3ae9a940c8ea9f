package org.apache.spark.sql.lakelog

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.{AtomicBoolean, AtomicReference}

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.sql.connector.catalog.CatalogPlugin
import org.apache.spark.sql.types.DataType

/**
 * One catalog instance in one Spark session: the transaction that is open in it, and what its requests carry.
 *
 * A transaction lives in the Python process. It belongs to the session's statements from its begin to its end, whatever
 * thread they run in, but not to streaming queries, which outlive it.
 */
private[lakelog] final class LakeSession(
    plugin: CatalogPlugin, connect: () => Bridge, settings: () => Map[String, String]) {

  private def catalog = plugin.name
  private lazy val bridge = connect()
  private val settingsOfCatalog = settings()
  private val open = new AtomicReference[OpenTransaction]()

  // A session that forgets to end a transaction must not keep it in the Python process for ever.
  ProcessState.whenGone(this)(new LakeSession.Abandoned(open))

  @volatile private var commits: Seq[wire.CommitMade] = Nil

  /** Takes note of what a request has committed, if anything. */
  private[lakelog] def committed(made: Seq[wire.CommitMade]): Unit = if (made.nonEmpty) commits = made

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

  /** The user and the text of the statement under way, which its commit will record. */
  def statement: wire.Statement = StatementInternals.statement

  /** Where requests go that belong to a transaction. */
  def channelIn(transaction: OpenTransaction): Channel = new Channel(bridge, this, Some(transaction))

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
          if (procedure.asks) GoingCall.run(channel, ofProcedure(procedure.name, arguments), jobs)
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

  def beginStatement(): OpenTransaction = begun("begin_transaction", wire.JsonValues.nulls("isolation"))._1

  def commitStatement(transaction: OpenTransaction): Unit =
    try committed("commit_transaction", transaction)
    finally {
      transaction.end()
      changed()
    }

  /** What has changed by one name has so by all that a table has, in this catalog and others on the same warehouse. */
  private[lakelog] def changed(): Unit = CachedTables.refreshOld(bridge)

  def rollBackStatement(transaction: OpenTransaction): Unit =
    try {
      run(channelIn(transaction), "rollback_transaction", wire.FreeJson.empty)
      transaction.deleteFiles()
    } finally transaction.end()

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
   * Runs a procedure. A token that it needs to be retried is made here, unless there is one already. Where it has a
   * job, Python says which, and gets its result with the call.
   */
  private def run(
      to: Channel, procedure: String, arguments: wire.FreeJson, token: Option[wire.Token] = None,
      job: Option[ProcedureJobs] = None): Seq[Seq[wire.FreeJson]] = {
    val call = ofProcedure(procedure, arguments)
    val once = token.orElse(if (to.isInTransaction) None else to.ask(wire.CallToken(call)).token)
    val result = job.flatMap(prepared(to, call, _, None))
    to.change(wire.Call(call, once, result, commits = if (procedure == LakeSession.LastCommit) commits else Nil)).rows
  }

  private def ofProcedure(procedure: String, arguments: wire.FreeJson): wire.OfProcedure =
    wire.OfProcedure(procedure, arguments, catalog, SessionInternals.currentNamespace(catalog))

  /** What came of the last of the jobs that the call needs first, of which there may be none. */
  @tailrec
  private def prepared(
      to: Channel, call: wire.OfProcedure, jobs: ProcedureJobs, before: Option[wire.AnyResult])
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

/**
 * A transaction of the session or of a statement; `token` is made before its commit is first requested. `query` is the
 * streaming query whose thread has begun it. It has a process of its own, so that it is lost with no other catalog's.
 */
private[lakelog] final class OpenTransaction(val id: String, val query: Option[String], val bridge: Bridge) {
  @volatile var token: Option[wire.Token] = None
  private val ended = new AtomicBoolean

  def hasEnded: Boolean = ended.get

  /** Ends it in Python too, where it has not ended there, and gives its process back. */
  def end(): Unit = if (!ended.getAndSet(true)) {
    val isGone =
      try {
        bridge.ask(wire.AbandonTransaction(), wire.Scope(Some(id)))
        true
      } catch { case _: LakelogFailure => false }
    bridge.end(isGone)
  }

  private val deletions = new ConcurrentLinkedQueue[() => Unit]()

  /** `delete` must not refer to the session, which would then never be collected. */
  def onRollback(delete: () => Unit): Unit = deletions.add(delete)

  /**
   * Deletes the data files that were written in it, where its commit was never requested: then they are in no version. A
   * query that was planned inside finds them no longer. What fails here, vacuum does later.
   */
  def deleteFiles(): Unit = if (token.isEmpty) deletions.forEach { delete =>
    try delete()
    catch { case NonFatal(_) => }
  }
}

private[lakelog] object LakeSession {

  /** The procedure that shows what the session has committed last. */
  private val LastCommit = "last_commit"

  /** Rolls back what a session left open that cannot be reached any more. It must not know the session itself. */
  private final class Abandoned(open: AtomicReference[OpenTransaction]) extends Runnable {
    override def run(): Unit = Option(open.getAndSet(null)).foreach(_.end())
  }
}

/**
 * Where requests go: to Python, as part of the transaction in which their subject was loaded, or of none.
 *
 * Immutable, so that a table stays in the transaction that it was loaded in, whatever the session does later.
 */
private[lakelog] final class Channel(bridge: Bridge, session: LakeSession, transaction: Option[OpenTransaction]) {

  def isInTransaction: Boolean = transaction.isDefined

  /** Whether this thread runs a streaming query, and the transaction is not one that it has begun. */
  def isOutsideOfQuery: Boolean =
    StatementInternals.isStreaming && transaction.exists(_.query != StatementInternals.streamingQuery)

  /** Where answers come from: the same for all catalogs with the same settings. */
  def source: AnyRef = bridge

  /** The id of the transaction, if there is one. */
  def transactionId: Option[String] = transaction.map(_.id)

  /** Says how files are deleted that were given to the transaction, if there is one. */
  def onRollback(delete: () => Unit): Unit = transaction.foreach(_.onRollback(delete))

  /** Sends a request that changes nothing. */
  def ask[A](request: wire.Request[A]): A = withBytes(request)._1

  /** Sends a request that changes nothing; returns the answer and the bytes beside it. */
  def withBytes[A](request: wire.Request[A]): (A, Array[Byte]) = asked.ask(request, scope)

  /** Sends a request that changes nothing; returns the answer and the files beside it, whose keys are of these types. */
  def withFiles[A](request: wire.Request[A], location: String, keyTypes: Seq[DataType] = Nil): (A, PlannedFiles) = {
    val files = new PlannedParts(location, keyTypes)
    (asked.askInParts(request, scope, files), files.result())
  }

  /** The files beside the answer. */
  def files(request: wire.Request[_], location: String): PlannedFiles = withFiles(request, location)._2

  /** The bytes beside the answer. */
  def bytes(request: wire.Request[_]): Array[Byte] = withBytes(request)._2

  /** Requests a change, on behalf of the statement under way and its user. */
  def change[A](request: wire.Request[A], first: Option[wire.First] = None): A =
    try asked.ask(request, scope.copy(query = Some(session.statement)), first, session.committed)._1
    finally if (!isInTransaction) session.changed()

  /** Requests a change that begins with the answer to another request, which becomes that member of it. */
  def changeAfter[A](request: wire.Request[A], first: wire.Request[_], as: String): A =
    change(request, Some(wire.First(first.method, scope.on(first), as)))

  /** Requests a change with a token, so that a retry is the same change; a transaction is retried as a whole. */
  def changeOnce[A](request: wire.Change[A]): A =
    if (isInTransaction) change(request) else changeAfter(request, request.subject, "token")

  private def asked: Bridge = transaction.fold(bridge)(_.bridge)

  private def scope: wire.Scope = {
    if (transaction.exists(_.hasEnded)) {
      throw new LakelogFailure(
        "transaction-ended",
        s"The transaction ${transaction.get.id}, in which this query was prepared, has ended: run the query again.",
        outcomeKnown = true)
    }
    wire.Scope(transaction.map(_.id))
  }
}
