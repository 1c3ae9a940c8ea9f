package org.apache.spark.sql.lakelog.bridge

import java.lang.ref.WeakReference
import java.util.concurrent.{ConcurrentHashMap, Semaphore}

import scala.annotation.tailrec

import org.apache.spark.sql.lakelog.internals.{AdapterLog, LakelogFailure}
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.wire

/**
 * Which catalog it is: the Python to run, and the catalog's settings (warehouse, endpoint, …).
 *
 * Settings hold no credentials, and they travel through the pipe rather than among the process's arguments.
 */
private[lakelog] final case class BridgeSettings(python: String, settings: Map[String, String])

/** Where a catalog is open: what the process that has it calls it. */
private[lakelog] final case class OpenedCatalog(child: Child, number: Long)

/**
 * One catalog in a Python process, which plans and commits: it is opened there when it is first needed, and again when the
 * process has died.
 *
 * A request that a death left without answer is retried, up to [[Bridge.Attempts]] attempts in all. That is safe
 * because each request that changes something carries a token that Python sent before it began: a commit that happened
 * is found again by its id. One bridge serves all sessions of the JVM that use the same settings. Retries run
 * in a process of their own ([[alone]]): a request that kills its process must not keep killing it for others.
 */
private[lakelog] final class Bridge(
    private val settings: BridgeSettings, private val python: Python, isAlone: Boolean) {

  private val opened = new Bridge.Opened

  ProcessState.whenGone(this)(opened)

  /**
   * Sends a request; returns the answer and the bytes beside it. `committed` takes note of the commits that it has made.
   * Throws [[LakelogFailure]] for an error that Python reports or for a Python that cannot run.
   */
  def ask[A](
      request: wire.Request[A], scope: wire.Scope = wire.Scope(), first: Option[wire.FirstRequest] = None,
      committed: Seq[wire.CommitMade] => Unit = _ => ()): (A, Array[Byte]) = {
    val beside = new OnePart
    val answered = sent(request, scope, beside, first)
    committed(answered.commits)
    (answered.to(request), beside.result())
  }

  /** As [[ask]], where what stands beside the answer goes to `beside` as it comes. */
  def askInParts[A](request: wire.Request[A], scope: wire.Scope, beside: Parts): A =
    sent(request, scope, beside, None).to(request)

  private def sent(
      request: wire.Request[_], scope: wire.Scope, beside: Parts, first: Option[wire.FirstRequest]): wire.Answered =
    answer(wire.SentRequest(request.method, scope.on(request), first = first), beside, attempt = 1, mayHaveBegun = false)

  /** `mayHaveBegun`: whether an earlier attempt was sent. What is answered first shows that a request has begun. */
  @tailrec
  private def answer(asked: wire.SentRequest, beside: Parts, attempt: Int, mayHaveBegun: Boolean): wire.Answered = {
    var wasSent = false
    beside.begin()
    val died =
      try {
        val catalog = current()
        wasSent = true
        var parts = 0L
        val frame = catalog.child.ask(
          asked.copy(catalog = Some(catalog.number)),
          part => { parts += 1; beside.add(part) })
        val (content, last) = Python.answered(frame)
        if (parts != content.parts) throw Bridge.incomplete(asked, parts, content.parts)
        beside.add(last)
        return content
      } catch { case died: ChildDied => died }
    val begun = mayHaveBegun || (wasSent && died.wasAsked && (asked.first.isEmpty || died.begun.isDefined))
    if (attempt == Bridge.Attempts) throw Bridge.gone(asked, died, begun)
    AdapterLog.warn(
      s"The Python side of lakelog ended during ${asked.method}; starting it again. Last output: ${died.lastOutput}")
    val again = died.begun.fold(asked)(wire.Envelope.afterFirst(asked, _))
    // What had not been sent yet cannot be what the process has died of.
    if (isAlone || !died.wasAsked) answer(again, beside, attempt + 1, begun)
    else answerAlone(again, beside, attempt + 1, begun)
  }

  private def answerAlone(
      asked: wire.SentRequest, beside: Parts, attempt: Int, mayHaveBegun: Boolean): wire.Answered = {
    Bridge.retried.acquireUninterruptibly()
    try {
      val own = alone()
      try own.answer(asked, beside, attempt, mayHaveBegun)
      finally own.end(isSound = false)
    } finally Bridge.retried.release()
  }

  /**
   * The same catalog in a process that holds no other, until its [[end]]. If the one that was used last held this catalog,
   * it still does, with all that it has read: a transaction costs no more requests than the same statements outside of one.
   */
  def alone(): Bridge = Bridge.idle.remove(settings.python) match {
    case null => new Bridge(settings, new Python(settings.python), isAlone = true)
    case same if same.settings == settings => same
    case other =>
      other.opened.run()
      new Bridge(settings, other.python, isAlone = true)
  }

  /** Gives back the process that is this bridge's own: to be used again with its catalog if that `isSound`. */
  def end(isSound: Boolean): Unit = {
    if (!isSound) opened.run()
    if (Bridge.idle.putIfAbsent(settings.python, this) != null) python.stop()
  }

  private def current(): OpenedCatalog = opened.synchronized {
    val child = python.current()
    opened.catalog.filter(_.child eq child).getOrElse {
      val number = Python.ask(child, wire.OpenCatalog(settings.settings)).catalog
      val catalog = OpenedCatalog(child, number)
      opened.catalog = Some(catalog)
      catalog
    }
  }
}

private[lakelog] object Bridge {

  private val Attempts = 4

  /** At most this many processes at a time are for requests that are retried. */
  private val retried = new Semaphore(2)

  private val bridges = new ConcurrentHashMap[BridgeSettings, WeakReference[Bridge]]()

  /** Of each Python, a bridge of its own that is used by nothing at the moment: to start another process takes long. */
  private val idle = new ConcurrentHashMap[String, Bridge]()

  /**
   * The bridge of this JVM for these settings. Spark makes a catalog per session and never closes one; when none of them
   * can be reached any more, nor a table of theirs, Python closes the catalog.
   */
  def of(settings: BridgeSettings): Bridge = {
    var found: Bridge = null
    bridges.compute(settings,
      (_, known) => {
        found = if (known == null) null else known.get
        if (found != null) known
        else {
          found = new Bridge(settings, Python.of(settings.python), isAlone = false)
          new WeakReference(found)
        }
      })
    bridges.values.removeIf(_.get == null)
    found
  }

  /** What a bridge has opened, which is closed when the bridge cannot be reached any more. It must not know the bridge. */
  private final class Opened extends Runnable {
    var catalog: Option[OpenedCatalog] = None

    override def run(): Unit = synchronized { val closing = catalog; catalog = None; closing }.foreach { opened =>
      try Python.ask(opened.child, wire.CloseCatalog(opened.number))
      catch { case _: ChildDied | _: LakelogFailure => } // It is closed with the process.
    }
  }

  private def incomplete(asked: wire.SentRequest, came: Long, sent: Long) = new LakelogFailure(
    "internal",
    s"$came of $sent parts came before the answer to '${asked.method}': what lakelog's Python side sent is not whole. " +
      "Run the statement again.")

  private def gone(asked: wire.SentRequest, died: ChildDied, mayHaveBegun: Boolean) = {
    val isChange = wire.Envelope.isChange(asked)
    val happened =
      if (!isChange) "It changes nothing"
      else if (mayHaveBegun) "Whether it took effect is not known: check the table's history"
      else "It had not begun, so nothing was changed"
    val killed = died.signal.fold("")(signal => s" It was killed by signal $signal: the machine may be short of memory.")
    new LakelogFailure(
      if (isChange && mayHaveBegun) "commit-unknown" else "python",
      s"The Python side of lakelog ended $Attempts times during '${asked.method}'. $happened.$killed " +
        s"Last output: ${died.lastOutput}")
  }
}
