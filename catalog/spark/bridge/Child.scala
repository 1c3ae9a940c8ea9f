package org.apache.spark.sql.lakelog.bridge

import java.io.{BufferedInputStream, BufferedOutputStream, BufferedReader, DataInputStream, DataOutputStream, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.apache.spark.sql.lakelog.internals.LakelogFailure
import org.apache.spark.sql.lakelog.wire

/**
 * The child ended before it answered: whether the request took effect is not known, only what it sent before it began,
 * and whether the request was sent at all. `exit` is how the process ended, if that is known.
 */
private[lakelog] final class ChildDied(
    val lastOutput: String, val begun: Option[Array[Byte]], val wasAsked: Boolean, val exit: Option[Int])
  extends IOException("The Python side of lakelog ended") {

  /** The signal that killed the process. */
  def signal: Option[Int] = exit.filter(_ > ChildDied.SignalsFrom).map(_ - ChildDied.SignalsFrom)
}

private[lakelog] object ChildDied {
  private val SignalsFrom = 128
}

/**
 * One Python process and the requests under way in it.
 *
 * Requests of many threads share the pipes: each has a number, and a long one does not hold up the others. Once the
 * process has ended, every request under way and every later one fails with [[ChildDied]]. The process ends by itself
 * when its standard input closes, so none outlives the JVM.
 */
private[lakelog] final class Child(command: Seq[String], log: String => Unit) {

  private val process = {
    val builder = new ProcessBuilder(command: _*)
    builder.environment.computeIfPresent("PYTHONPATH", (_, path) => PythonPath.cleaned(path).orNull)
    builder.start()
  }
  private val out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream))
  private val in = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 16))
  private val answers = new Answers(() => read())
  private val numbers = new AtomicLong()
  private val lastLines = mutable.Queue.empty[String]
  @volatile private var broke = false
  @volatile private var takesNothing = false

  private val listener = {
    val thread = new Thread(() => listen(), "lakelog-child-errors")
    thread.setDaemon(true)
    thread.start()
    thread
  }

  def isAlive: Boolean = process.isAlive && !answers.haveEnded && !takesNothing

  def stop(): Unit = process.destroyForcibly()

  /**
   * Sends a request and waits for its answer, through interrupts: a commit must not be left without its outcome. Throws
   * [[ChildDied]] if it can be retried, [[LakelogFailure]] if it is not known with which token. Parts of the answer
   * that come before it go to `part`, one after the other.
   */
  def ask(request: wire.SentRequest, part: Array[Byte] => Unit): Frame = {
    val number = numbers.incrementAndGet()
    val sent = Frame(number, wire.Envelope.asked(request))
    answers.expect(number)
    try {
      if (!isAlive) throw died(wasAsked = false)
      send(sent)
      var frame = answers.await(number)
      while (frame.exists(_.isPart)) {
        part(frame.get.body)
        frame = None // The next one is waited for without it.
        frame = answers.await(number)
      }
      frame.getOrElse(throw unanswered(number, request))
    } finally answers.forget(number)
  }

  private def send(frame: Frame): Unit =
    try out.synchronized(Frame.write(out, frame))
    catch {
      case _: IOException =>
        // It has ended, although it may appear to be alive for a moment still.
        takesNothing = true
        // Its last output is lost once it is stopped.
        val ended = died(wasAsked = false)
        stop()
        throw ended
      case broken: Throwable =>
        // What was to follow is missing, and everything that is sent from here on would be taken for it.
        stop()
        throw broken
    }

  private def read(): Option[Frame] = {
    val frame =
      try Frame.read(in)
      catch {
        // An error of the JVM too: the thread that reads does so for all threads that wait.
        case broken: Throwable =>
          broke = true
          log(s"The pipe from Python broke: $broken")
          None
      }
    if (frame.isEmpty) {
      awaitEnd()
      stop()
    }
    frame
  }

  private def listen(): Unit = {
    val lines = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
    try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
        lastLines.synchronized { lastLines.enqueue(line); if (lastLines.size > Child.KeptLines) lastLines.dequeue() }
        log(line)
      }
    catch { case _: IOException => }
  }

  private def unanswered(number: Long, request: wire.SentRequest): Throwable = {
    val begun = answers.begun(number)
    // If the pipe broke, Python may have sent and done what was never read.
    if (broke && begun.isEmpty && request.first.isDefined) {
      new LakelogFailure(
        "commit-unknown",
        s"The pipe from the Python side of lakelog broke during '${request.method}'. Whether it took effect is not known: " +
          "check the table's history.")
    } else died(begun, wasAsked = true)
  }

  private def died(begun: Option[Array[Byte]] = None, wasAsked: Boolean): ChildDied = {
    val exit = awaitEnd()
    new ChildDied(lastLines.synchronized(lastLines.mkString("\n")), begun, wasAsked, exit)
  }

  /**
   * What Python wrote as it ended may still be on its way, and stopping the process closes the pipe that it is in. Returns
   * how it ended, if that is known in time. An interrupted thread retries all the same.
   */
  private def awaitEnd(): Option[Int] = {
    val hasEnded =
      try {
        listener.join(Child.LastOutputWaitMs)
        process.waitFor(Child.LastOutputWaitMs, TimeUnit.MILLISECONDS)
      } catch {
        case _: InterruptedException =>
          Thread.currentThread().interrupt()
          !process.isAlive
      }
    if (hasEnded) Some(process.exitValue()) else None
  }
}

private[lakelog] object Child {
  private val KeptLines = 20
  private val LastOutputWaitMs = 500L
}
