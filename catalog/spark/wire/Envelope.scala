package org.apache.spark.sql.lakelog.wire

import java.nio.charset.StandardCharsets.UTF_8

import org.json4s.JsonAST.{JArray, JInt, JObject}

/**
 * What a request was answered, after so many parts of what stands beside it, and the commits that it has made; only the
 * request knows how to read the answer.
 */
private[lakelog] final class Answered private[wire] (json: JObject, val parts: Long, val commits: Seq[CommitMade]) {
  def to[A](request: Request[A]): A = request.answer(json)
}

/** What frames hold: requests, and answers or errors. */
private[lakelog] object Envelope {

  def asked(request: SentRequest): Array[Byte] = request.asText.getBytes(UTF_8)

  /** Whether it may change something: only a change names its statement and user. */
  def isChange(request: SentRequest): Boolean = request.first.isDefined || Json.get(request.params, "query").isDefined

  /** The same request with the answer to its first one, after which it needs that no longer. */
  def afterFirst(request: SentRequest, answer: Array[Byte]): SentRequest =
    request.copy(params = Json.merge(request.params, json(answer).obj: _*), first = None)

  def failed(why: FailedRequest): Array[Byte] = Json.text(JObject("error" -> why.json)).getBytes(UTF_8)

  def answered(frame: Array[Byte]): Either[FailedRequest, Answered] = {
    val content = json(frame)
    Json.get(content, "error") match {
      case Some(error: JObject) => Left(FailedRequest.of(error))
      case _ =>
        val answer = Json.get(content, "ok").collect { case ok: JObject => ok }.getOrElse(JObject(Nil))
        val parts = Json.get(content, "parts").collect { case JInt(parts) => parts.toLong }.getOrElse(0L)
        val commits = Json.get(content, "commits").collect { case JArray(all) => all }.getOrElse(Nil)
        Right(new Answered(answer, parts, commits.collect { case made: JObject => CommitMade.of(made) }))
    }
  }

  private def json(text: Array[Byte]): JObject = Json.parsed(new String(text, UTF_8))
}
