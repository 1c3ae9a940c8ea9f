package org.apache.spark.sql.lakelog.bridge

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.spark.sql.lakelog.internals.{AdapterLog, LakelogFailure}
import org.apache.spark.sql.lakelog.wire

/**
 * A process that runs lakelog under that Python, in this JVM's environment; [[PythonPath]] says where it looks for modules.
 * It is started when it is first needed, and again when it has died.
 *
 * One process holds all catalogs of this JVM that name the same Python; nothing of one reaches another in it. A process of
 * its own is lent to what must not die with others: an open transaction, and a request that is retried because it may
 * be what the process has died of.
 */
private[lakelog] final class Python(val program: String) {

  private var child: Child = _

  /** The process that runs, or a new one. */
  def current(): Child = synchronized {
    if (child == null || !child.isAlive) child = start()
    child
  }

  /** Ends the process, if one runs. */
  def stop(): Unit = synchronized(if (child != null) child.stop())

  private def start(): Child = {
    val started =
      try new Child(PythonChoice.file(program) +: PythonPath.arguments, line => AdapterLog.warn(s"Python: $line"))
      catch { case missing: java.io.IOException => throw Python.doesNotStart(program, missing.getMessage) }
    try {
      Python.ask(started, wire.Hello(AdapterVersion.text, org.apache.spark.SPARK_VERSION))
      started
    } catch {
      // A process that is killed as it starts lacks nothing: the request is retried in another one.
      case died: ChildDied if died.signal.isDefined =>
        throw new ChildDied(died.lastOutput, begun = None, wasAsked = false, died.exit)
      case died: ChildDied => throw Python.doesNotStart(program, died.lastOutput)
      case failed: Throwable =>
        started.stop()
        throw failed
    }
  }
}

private[lakelog] object Python {

  private val pythons = new ConcurrentHashMap[String, Python]()

  /** The process that all catalogs with that Python share. */
  def of(program: String): Python = pythons.computeIfAbsent(program, new Python(_))

  /** Asks the process itself. */
  def ask[A](child: Child, request: wire.Request[A]): A = {
    val (answer, _) = answered(child.ask(wire.SentRequest(request.method, request.json), (new OnePart).add))
    answer.to(request)
  }

  /** The content of an answer, and the bytes beside it. Throws [[LakelogFailure]] for an error that Python reports. */
  def answered(frame: Frame): (wire.Answered, Array[Byte]) = {
    val answer =
      try wire.Envelope.answered(frame.text)
      catch { case NonFatal(wrong) => throw unreadable(wrong) }
    answer match {
      case Left(failed) => throw new LakelogFailure(failed.kind, failed.message, failed.outcomeKnown)
      case Right(content) => (content, frame.body)
    }
  }

  private def unreadable(wrong: Throwable) =
    new LakelogFailure("internal", s"Spark cannot read the answer of lakelog's Python side: ${wrong.getMessage}")

  private def doesNotStart(program: String, output: String) = {
    val why = output.linesIterator.toSeq.lastOption.getOrElse("it printed nothing")
    new LakelogFailure(
      "python",
      s"lakelog's Python side did not start with '$program': $why. Install lakelog ${AdapterVersion.text} there, " +
        s"from a clone or a wheel ('$program -m pip install /path/to/clone'), or name a Python that has it in " +
        s"spark.sql.catalog.<name>.python. ${PythonChoice.searched(PythonChoice.places)}." + PythonChoice.lookedFor(
            program))
  }
}
