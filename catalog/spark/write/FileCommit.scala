package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JObject, JString}
import org.json4s.jackson.JsonMethods

/** What becomes of the files that the tasks have written. */
private[lakelog] trait FileCommit {

  /** The id that the names of the write's files begin with. Made once, before the first task starts. */
  def writeId: String

  /** Takes over the files, as the JSON of data files. */
  def commit(operation: WriteOperation, files: Seq[String]): Unit

  /** Whether files may have been taken over although [[commit]] failed. */
  def outcomeUnknown: Boolean
}

/** Commits files to a table that is there. */
private[lakelog] final class TableCommit(access: TableAccess, facts: TableFacts) extends FileCommit {

  private lazy val begun = access.call("begin_write", facts.reference)
  private var unknown = false

  override def writeId: String = Json.string(Json.child(begun, "write"), "id")

  override def outcomeUnknown: Boolean = unknown

  override def commit(operation: WriteOperation, files: Seq[String]): Unit =
    try {
      access.bridge.call("commit_write", Json.merge(
        facts.reference,
        "write" -> Json.child(begun, "write"),
        "token" -> Json.child(begun, "token"),
        "operation" -> JString(operation.name),
        "filter" -> operation.filter.getOrElse(org.json4s.JNull),
        "files" -> JArray(files.map(JsonMethods.parse(_)).toList)))
    } catch {
      case failure: LakelogFailure =>
        unknown = failure.outcomeUnknown
        throw access.failures.ofTable(failure, access.ident)
    }
}

/** Hands the files to a staged table, which commits them with its metadata. */
private[lakelog] final class StagedCommit(write: JObject, keep: Seq[String] => Unit) extends FileCommit {

  override def writeId: String = Json.string(write, "id")

  override def outcomeUnknown: Boolean = false

  override def commit(operation: WriteOperation, files: Seq[String]): Unit = keep(files)
}
