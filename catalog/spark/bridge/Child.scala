package org.apache.spark.sql.lakelog

import java.io.{BufferedInputStream, BufferedOutputStream, BufferedReader, DataInputStream, DataOutputStream, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.json4s.JsonAST.{JInt, JObject}

/** The child ended before it answered: whether it did what it was asked is not known. */
private[lakelog] final class ChildDied(val lastWords: String) extends IOException("The Python side of lakelog ended")

/**
 * One Python process and the requests under way in it.
 *
 * Requests of many threads share the pipes: each has a number, a reader thread hands the answers out, and a long one
 * does not hold up the others. Once the process has ended, every request under way and every later one fails with
 * [[ChildDied]]. The process ends by itself when its standard input closes, so none outlives the JVM.
 */
private[lakelog] final class Child(command: Seq[String], log: String => Unit) {

  private val process = new ProcessBuilder(command: _*).start()
  private val out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream))
  private val waiting = new ConcurrentHashMap[Long, CompletableFuture[Frame]]()
  private val numbers = new AtomicLong()
  private val words = mutable.Queue.empty[String]
  @volatile private var ended = false

  private val listener = daemon("lakelog-child-errors")(listen())
  daemon("lakelog-child-answers")(receive())

  def isAlive: Boolean = !ended

  def stop(): Unit = process.destroy()

  /** Sends a request and waits for its answer, through interrupts: a commit must not be left without its outcome. */
  def ask(method: String, params: JObject, body: Array[Byte]): Frame = {
    val number = numbers.incrementAndGet()
    val answer = new CompletableFuture[Frame]()
    waiting.put(number, answer)
    try {
      if (ended) throw died()
      send(Frame(Json.obj("id" -> JInt(number), "method" -> Json.text(method), "params" -> params), body))
      await(answer)
    } finally waiting.remove(number)
  }

  private def send(frame: Frame): Unit =
    try out.synchronized(Frame.write(out, frame))
    catch { case _: IOException => throw died() }

  private def await(answer: CompletableFuture[Frame]): Frame = {
    var interrupted = false
    try {
      var frame: Frame = null
      while (frame == null) {
        try frame = answer.get()
        catch {
          case _: InterruptedException => interrupted = true
          case failed: ExecutionException => throw failed.getCause
        }
      }
      frame
    } finally if (interrupted) Thread.currentThread().interrupt()
  }

  private def receive(): Unit = {
    val in = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 16))
    try {
      Iterator.continually(Frame.read(in)).takeWhile(_.isDefined).flatten.foreach { frame =>
        // Nobody waits any more where the sender failed between its registration and its write.
        Option(waiting.get(Json.long(frame.json, "id"))).foreach(_.complete(frame))
      }
    } catch {
      case broken: Exception => log(s"The pipe from Python broke: $broken")
    } finally {
      ended = true
      process.destroy()
      val cause = died()
      waiting.values.forEach(_.completeExceptionally(cause))
    }
  }

  private def listen(): Unit = {
    val lines = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
    try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
      words.synchronized { words.enqueue(line); if (words.size > Child.KeptLines) words.dequeue() }
      log(line)
    }
    catch { case _: IOException => }
  }

  private def died(): ChildDied = {
    // What Python said as it ended may still be on its way.
    listener.join(Child.LastWordsWaitMs)
    new ChildDied(words.synchronized(words.mkString("\n")))
  }

  private def daemon(name: String)(run: => Unit): Thread = {
    val thread = new Thread(() => run, name)
    thread.setDaemon(true)
    thread.start()
    thread
  }
}

private[lakelog] object Child {
  private val KeptLines = 20
  private val LastWordsWaitMs = 500L
}
