package org.apache.spark.sql.lakelog.session

import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.lakelog.table.{Channel, OpenTransaction}

/** Transactions that are not the session's: each is that of one statement, or of one refresh. */
private[lakelog] trait OwnTransactions {

  def beginStatement(): OpenTransaction

  /** Where requests go that belong to a transaction. */
  def channelIn(transaction: OpenTransaction): Channel

  def commitStatement(transaction: OpenTransaction): Unit

  def rollBackStatement(transaction: OpenTransaction): Unit
}

/** Rolls back what was left open and cannot be reached any more. It must not know who left it. */
private[session] final class AbandonedTransaction(open: AtomicReference[OpenTransaction]) extends Runnable {
  override def run(): Unit = Option(open.getAndSet(null)).foreach(_.end())
}
