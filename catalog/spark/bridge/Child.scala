package org.apache.spark.sql.lakelog

import java.io.{BufferedInputStream, BufferedOutputStream, BufferedReader, DataInputStream, DataOutputStream, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import org.json4s.JsonAST.{JInt, JObject, JString}

/** What Python is asked; `first` as long as it is not known to have begun. */
private[lakelog] final case class Request(method: String, params: JObject, first: Option[First]) {

  def toJson(number: Long): JObject = JObject(List(
    "id" -> JInt(number), "method" -> JString(method), "params" -> params) ++ first.map { asked =>
      "first" -> Json.obj("method" -> JString(asked.method), "params" -> asked.params, "as" -> JString(asked.as))
    })
}

/** The child ended before it answered: whether it did what it was asked is not known, but what it told before it began. */
private[lakelog] final class ChildDied(val lastWords: String, val begun: Option[JObject])
  extends IOException("The Python side of lakelog ended")

/**
 * One Python process and the requests under way in it.
 *
 * Requests of many threads share the pipes: each has a number, and a long one does not hold up the others. Once the
 * process has ended, every request under way and every later one fails with [[ChildDied]]. The process ends by itself
 * when its standard input closes, so none outlives the JVM.
 */
private[lakelog] final class Child(command: Seq[String], log: String => Unit) {

  private val process = new ProcessBuilder(command: _*).start()
  private val out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream))
  private val in = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 16))
  private val answers = new Answers(() => read())
  private val numbers = new AtomicLong()
  private val words = mutable.Queue.empty[String]

  private val listener = {
    val thread = new Thread(() => listen(), "lakelog-child-errors")
    thread.setDaemon(true)
    thread.start()
    thread
  }

  def isAlive: Boolean = process.isAlive && !answers.haveEnded

  def stop(): Unit = process.destroy()

  /** Sends a request and waits for its answer, through interrupts: a commit must not be left without its outcome. */
  def ask(request: Request): Frame = {
    val number = numbers.incrementAndGet()
    answers.expect(number)
    try {
      if (!isAlive) throw died()
      send(Frame(request.toJson(number)))
      answers.await(number).getOrElse(throw died(answers.begun(number)))
    } finally answers.forget(number)
  }

  private def send(frame: Frame): Unit =
    try out.synchronized(Frame.write(out, frame))
    catch { case _: IOException => throw died() }

  private def read(): Option[Frame] = {
    val frame =
      try Frame.read(in)
      catch {
        case broken: Exception =>
          log(s"The pipe from Python broke: $broken")
          None
      }
    if (frame.isEmpty) process.destroy()
    frame
  }

  private def listen(): Unit = {
    val lines = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
    try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
      words.synchronized { words.enqueue(line); if (words.size > Child.KeptLines) words.dequeue() }
      log(line)
    }
    catch { case _: IOException => }
  }

  private def died(begun: Option[JObject] = None): ChildDied = {
    // What Python said as it ended may still be on its way.
    listener.join(Child.LastWordsWaitMs)
    new ChildDied(words.synchronized(words.mkString("\n")), begun)
  }
}

private[lakelog] object Child {
  private val KeptLines = 20
  private val LastWordsWaitMs = 500L
}
