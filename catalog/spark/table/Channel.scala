package org.apache.spark.sql.lakelog.table

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.bridge.Bridge
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.internals.{LakelogFailure, StatementInternals}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.DataType

/** What requests need of the session in which they are made. */
private[lakelog] trait ChannelSession {

  /** The user and the text of the statement under way, which its commit will record. */
  def statement: wire.UserStatement

  /** Takes note of what a request has committed, if anything. */
  def committed(made: Seq[wire.CommitMade]): Unit

  /** Returns whether a table's rows will be replaced by a later write, rather than deleted now. */
  def postponesTruncation(catalog: String, ident: Identifier): Boolean

  /** What has changed by one name has so by all that a table has, in this catalog and others on the same warehouse. */
  def changed(): Unit
}

/**
 * A transaction of the session or of a statement; `token` is made before its commit is first requested. `query` is the
 * streaming query whose thread has begun it. It has a process of its own, so that it is lost with no other catalog's.
 */
private[lakelog] final class OpenTransaction(val id: String, val query: Option[String], val bridge: Bridge) {
  @volatile var token: Option[wire.Token] = None
  private val ended = new AtomicBoolean

  def hasEnded: Boolean = ended.get

  /** Ends it in Python too, if it has not ended there, and gives its process back. */
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
   * Deletes the data files that were written in it, if its commit was never requested: then they are in no version. A
   * query that was planned inside finds them no longer. What fails here, vacuum does later.
   */
  def deleteFiles(): Unit = if (token.isEmpty) deletions.forEach { delete =>
    try delete()
    catch { case NonFatal(_) => }
  }
}

/**
 * Where requests go: to Python, as part of the transaction in which their subject was loaded, or of none.
 *
 * Immutable, so that a table stays in the transaction that it was loaded in, whatever the session does later.
 */
private[lakelog] final class Channel(bridge: Bridge, session: ChannelSession, transaction: Option[OpenTransaction]) {

  def isInTransaction: Boolean = transaction.isDefined

  /** Whether this thread runs a streaming query, and the transaction is not one that it has begun. */
  def isOutsideOfQuery: Boolean =
    StatementInternals.isStreaming && transaction.exists(_.query != StatementInternals.streamingQuery)

  /** Whether a table's rows will be replaced by a later write, rather than deleted now. */
  def postponesTruncation(catalog: String, ident: Identifier): Boolean =
    !isInTransaction && session.postponesTruncation(catalog, ident)

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
  def change[A](request: wire.Request[A], first: Option[wire.FirstRequest] = None): A =
    try asked.ask(request, scope.copy(query = Some(session.statement)), first, session.committed)._1
    finally if (!isInTransaction) session.changed()

  /** Requests a change that begins with the answer to another request, which becomes that member of it. */
  def changeAfter[A](request: wire.Request[A], first: wire.Request[_], as: String): A =
    change(request, Some(wire.FirstRequest(first.method, scope.on(first), as)))

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
