package org.apache.spark.sql.lakelog

import java.lang.ref.Cleaner
import java.util.{Collections, Map => JMap, WeakHashMap}

import scala.collection.mutable

/**
 * What the adapter keeps beside the objects that Spark holds, so that these find it again: the only place with maps and
 * thread locals of the whole process.
 *
 * Spark never says that a statement, a session or a catalog has ended. So nothing here holds any of them: what is kept of
 * one goes when it is collected as garbage. No entry has to be removed, and none outlives what it is about.
 *
 *  - [[OfStatement]] is made when the analysis or optimisation of a statement first asks for it, and goes with the
 *    statement's planning tracker. A DataFrame that is kept keeps it. When a catalog ends, what is kept of its tables in
 *    statements goes with these.
 *  - [[OfSession]] is made when a session first uses a function that brings files, and goes with the session.
 *  - [[OfThread]] is made when a thread first analyses a view or a function, and goes with the thread. What it has of a
 *    catalog's views is replaced by what the thread's next statement loads of that catalog, and goes with the catalog. What
 *    it has of functions is there while one function is analysed.
 *  - What [[whenGone]] registers runs once, when the object is collected, and goes with it.
 *
 * The Python processes are [[Bridge]]'s.
 */
private[lakelog] object ProcessState {

  /** What tables and namespaces of one statement share. A thread that reads or changes a map locks it. */
  final class OfStatement {

    /** The tables of each warehouse that the statement reads, by where its requests go. */
    val together: mutable.Map[AnyRef, ReadTogether] = mutable.Map.empty

    /**
     * What rows a MERGE looks for in its target, by where the table's requests go and its id, where the statement reads it for
     * nothing else.
     */
    val keys: mutable.Map[(AnyRef, String), MergeKeys] = mutable.Map.empty

    /** What was said of namespaces, by the session of the catalog and the name. */
    val namespaces: mutable.Map[(AnyRef, Seq[String]), JMap[String, String]] = mutable.Map.empty

    /** A REPLACE before any of its names was resolved. One thread analyses it. */
    var replaceAsGiven: Option[WritesByName.Given] = None
  }

  /** What one of Spark's sessions has. */
  final class OfSession {

    /** The files of functions that it has loaded, each with its kind. A thread that reads or changes it locks it. */
    val files: mutable.Set[(String, String)] = mutable.Set.empty
  }

  /** What one thread is at. No other thread sees it. */
  final class OfThread {

    private val loaded = new WeakHashMap[LakeSession, LoadedViews]()

    /** What the thread loaded first of each view of the catalog, for the statement that it analysed last. */
    def views(catalog: LakeSession): LoadedViews = loaded.getOrDefault(catalog, LoadedViews.Empty)

    def setViews(catalog: LakeSession, views: LoadedViews): Unit = {
      loaded.put(catalog, views)
      ()
    }

    /** The functions that the body uses which the thread analyses; None where it analyses none. */
    var functions: Option[FunctionsInUse] = None
  }

  private val statements = Collections.synchronizedMap(new WeakHashMap[AnyRef, OfStatement]())
  private val sessions = Collections.synchronizedMap(new WeakHashMap[AnyRef, OfSession]())
  private val threads = ThreadLocal.withInitial[OfThread](() => new OfThread)
  private val cleaner = Cleaner.create()

  /** Of the statement that this thread analyses or optimises; None while it does neither. */
  def ofStatement: Option[OfStatement] =
    StatementInternals.tracker.map(tracker => statements.computeIfAbsent(tracker, _ => new OfStatement))

  def ofSession(session: AnyRef): OfSession = sessions.computeIfAbsent(session, _ => new OfSession)

  def ofThread: OfThread = threads.get

  /** Has `last` run when `subject` can be reached no more; it must not know the subject itself. */
  def whenGone(subject: AnyRef)(last: Runnable): Unit = cleaner.register(subject, last)

  /** How many statements and sessions something is kept of, for tests. */
  def statementCount: Int = statements.size
  def sessionCount: Int = sessions.size
}
