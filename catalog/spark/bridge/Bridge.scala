package org.apache.spark.sql.lakelog

import java.util.Properties
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.json4s.JsonAST.{JObject, JString}

import org.apache.spark.internal.Logging

/**
 * What one child needs to know: the Python to run, and the catalog's settings (warehouse, endpoint, …).
 *
 * Settings hold no credentials, and they travel through the pipe rather than among the process's arguments.
 */
private[lakelog] final case class BridgeSettings(python: String, settings: Map[String, String])

/**
 * What a request needs to be the same request when it is asked again, and what Python makes and tells before it begins:
 * the answer to `method`, which becomes the parameter `as`.
 */
private[lakelog] final case class First(method: String, params: JObject, as: String)

/** What Python answered: JSON, and bytes beside it. */
private[lakelog] final case class Answer(json: JObject, body: Array[Byte])

/**
 * Asks Python, which plans and commits; starts its process when it is first needed and again when it has died.
 *
 * A request that a death left without answer is asked again, up to [[Bridge.Attempts]] times in all. That is safe
 * because each request that changes something carries a token that Python told before it began: a commit that happened
 * is found again by its id. One bridge serves all sessions of the JVM that use the same settings.
 */
private[lakelog] final class Bridge private (settings: BridgeSettings) extends Logging {

  private var child: Child = _

  /** Asks one question. Throws [[LakelogFailure]] for an error that Python reports or for a Python that cannot run. */
  def ask(method: String, params: JObject, first: Option[First] = None): Answer = {
    var attempt = 1
    var asked = Request(method, params, first)
    while (true) {
      try return answered(current().ask(asked))
      catch {
        case died: ChildDied if attempt < Bridge.Attempts =>
          logWarning(s"The Python side of lakelog ended during $method; starting it again. ${died.lastWords}")
          attempt += 1
          asked = died.begun.fold(asked)(begun => Request(method, Json.merge(params, begun.obj: _*), None))
        case died: ChildDied => throw Bridge.gone(method, died)
      }
    }
    throw new IllegalStateException("unreachable")
  }

  /** Answers the JSON of one question. */
  def call(method: String, params: JObject): JObject = ask(method, params).json

  private def current(): Child = synchronized {
    if (child == null || !child.isAlive) child = start()
    child
  }

  private def start(): Child = {
    val started =
      try new Child(Seq(settings.python, "-m", "lakelog.spark.bridge"), line => logWarning(s"Python: $line"))
      catch { case missing: java.io.IOException => throw Bridge.noPython(settings.python, missing.getMessage) }
    try {
      answered(started.ask(Request("hello", hello, None)))
      started
    } catch {
      case died: ChildDied => throw Bridge.noPython(settings.python, died.lastWords)
      case failed: Throwable =>
        started.stop()
        throw failed
    }
  }

  private def hello: JObject = Json.obj(
    "version" -> JString(Bridge.version),
    "spark" -> JString(org.apache.spark.SPARK_VERSION),
    "settings" -> JObject(settings.settings.toList.sorted.map { case (key, value) => key -> JString(value) }))

  private def answered(frame: Frame): Answer = {
    val json = try frame.json catch { case NonFatal(wrong) => throw Bridge.unreadable(wrong) }
    Json.get(json, "error") match {
      case Some(error: JObject) =>
        throw new LakelogFailure(Json.string(error, "kind"), Json.string(error, "message"), error)
      case _ =>
        Answer(Json.get(json, "ok").collect { case ok: JObject => ok }.getOrElse(JObject(Nil)), frame.body)
    }
  }
}

private[lakelog] object Bridge {

  private val Attempts = 4
  private val bridges = new ConcurrentHashMap[BridgeSettings, Bridge]()

  /** The bridge of this JVM for these settings. Spark makes a catalog per session and never closes one. */
  def of(settings: BridgeSettings): Bridge = bridges.computeIfAbsent(settings, new Bridge(_))

  /** The version of lakelog that this jar was built from. */
  lazy val version: String = {
    val properties = new Properties()
    val in = getClass.getResourceAsStream("/lakelog-adapter.properties")
    if (in != null) try properties.load(in) finally in.close()
    properties.getProperty("version", "unknown")
  }

  private def unreadable(wrong: Throwable) =
    new LakelogFailure("internal", s"Spark cannot read what lakelog's Python side answered: ${wrong.getMessage}")

  private def gone(method: String, died: ChildDied) = new LakelogFailure(
    "commit-unknown",
    s"The Python side of lakelog ended $Attempts times during '$method'. Whether it took effect is not known: look " +
      s"at the table's history. Its last words: ${died.lastWords}")

  private def noPython(python: String, words: String) = {
    val why = words.linesIterator.toSeq.lastOption.getOrElse("it said nothing")
    new LakelogFailure(
      "python",
      s"lakelog's Python side did not start with '$python': $why. Install lakelog $version there " +
        s"('$python -m pip install lakelog==$version'), or name a Python that has it in " +
        "spark.sql.catalog.<name>.python.")
  }
}
