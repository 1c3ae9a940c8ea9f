package org.apache.spark.sql.lakelog.process

import java.lang.ref.Cleaner
import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.sql.lakelog.internals.StatementInternals

/**
 * What the adapter keeps beside the objects that Spark holds, so that these find it again: the only place with maps and
 * thread locals of the whole process.
 *
 * Spark never says that a statement, a session or a catalog has ended. So nothing here holds any of them: what is kept of
 * one goes when it is collected as garbage. No entry has to be removed, and none outlives what it is about.
 *
 *  - What is kept [[ofStatement]] is made when the analysis or optimisation of a statement first asks for it, and goes with
 *    the statement's planning tracker. A DataFrame that is kept keeps it. When a catalog ends, what is kept of its tables in
 *    statements goes with these.
 *  - What is kept [[ofSession]] is made when a session first uses a function that brings files, and goes with the session.
 *  - What is kept [[ofThread]] is made when a thread first analyses a view or a function, and goes with the thread. What it
 *    has of a catalog's views is replaced by what the thread's next statement loads of that catalog, and goes with the
 *    catalog. What it has of functions is there while one function is analysed.
 *  - What [[whenGone]] registers runs once, when the object is collected, and goes with it.
 *
 * Who keeps something has a [[Slot]] for it, and locks what changes in it. The Python processes are the bridge's.
 */
private[lakelog] object ProcessState {

  /** A value that a statement, a session or a thread may have, which nothing but the slot's owner knows of. */
  final class Slot[A](val first: () => A)

  /** What is kept of one statement, session or thread: a value for each slot, made when it is first asked for. */
  final class Kept {
    private val values = mutable.Map.empty[Slot[_], Any]

    def apply[A](slot: Slot[A]): A = synchronized(values.getOrElseUpdate(slot, slot.first()).asInstanceOf[A])

    def update[A](slot: Slot[A], value: A): Unit = synchronized(values.update(slot, value))
  }

  private val statements = Collections.synchronizedMap(new WeakHashMap[AnyRef, Kept]())
  private val sessions = Collections.synchronizedMap(new WeakHashMap[AnyRef, Kept]())
  private val threads = ThreadLocal.withInitial[Kept](() => new Kept)
  private val cleaner = Cleaner.create()

  /** Of the statement that this thread analyses or optimises; None while it does neither. */
  def ofStatement: Option[Kept] =
    StatementInternals.tracker.map(tracker => statements.computeIfAbsent(tracker, _ => new Kept))

  def ofSession(session: AnyRef): Kept = sessions.computeIfAbsent(session, _ => new Kept)

  def ofThread: Kept = threads.get

  /** Has `last` run when `subject` can be reached no more; it must not know the subject itself. */
  def whenGone(subject: AnyRef)(last: Runnable): Unit = cleaner.register(subject, last)

  /** How many statements and sessions something is kept of, for tests. */
  def statementCount: Int = statements.size
  def sessionCount: Int = sessions.size
}
