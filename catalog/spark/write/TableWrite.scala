package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JNull, JObject, JValue}
import org.json4s.jackson.JsonMethods

/**
 * A write to a table that is there. `reference` names the version that it starts from: what was committed since may conflict
 * with what the write has read. `begin` asks for its id.
 */
private[lakelog] final class TableWrite(access: TableAccess, reference: => JObject, begin: => JObject) {

  private lazy val started = reference
  private lazy val begun = begin
  private var asked = false

  /** What the names of the write's files begin with. */
  def filePrefix: String = FileCommit.prefix(Json.child(begun, "write"))

  /** Whether the files may be in the table: a commit that failed may have happened. */
  def mayHaveHappened: Boolean = asked

  /** Asks for the commit, which is the same however often it is asked for. `files` are the JSON of data files. */
  def commit(method: String, files: Seq[String], params: (String, JValue)*): JObject = {
    val request = Json.merge(
      Json.merge(started, params: _*),
      "write" -> Json.child(begun, "write"),
      "token" -> Json.get(begun, "token").getOrElse(JNull),
      "files" -> JArray(files.map(JsonMethods.parse(_)).toList))
    asked = true
    try access.channel.change(method, request)
    catch {
      case failure: LakelogFailure =>
        asked = failure.outcomeUnknown
        throw access.failures.ofTable(failure, access.ident)
    }
  }
}
