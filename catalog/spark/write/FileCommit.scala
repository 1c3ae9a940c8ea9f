package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JNull, JObject, JString}
import org.json4s.jackson.JsonMethods

/** What becomes of the files that the tasks have written. */
private[lakelog] trait FileCommit {

  /** What the names of the write's files begin with: its version and id. Made once, before the first task starts. */
  def filePrefix: String

  /** Takes over the files, as the JSON of data files. */
  def commit(operation: WriteOperation, files: Seq[String]): Unit

  /** Whether files may have been taken over although [[commit]] failed. */
  def outcomeUnknown: Boolean
}

/** Commits files to a table that is there. */
private[lakelog] final class TableCommit(access: TableAccess, facts: TableFacts) extends FileCommit {

  private lazy val begun = access.call("begin_write", facts.reference)
  private var unknown = false

  override def filePrefix: String = FileCommit.prefix(Json.child(begun, "write"))

  override def outcomeUnknown: Boolean = unknown

  override def commit(operation: WriteOperation, files: Seq[String]): Unit =
    try {
      access.channel.change("commit_write", Json.merge(
        facts.reference,
        "write" -> Json.child(begun, "write"),
        "token" -> Json.get(begun, "token").getOrElse(JNull),
        "operation" -> JString(operation.name),
        "filter" -> operation.filter.getOrElse(JNull),
        "files" -> JArray(files.map(JsonMethods.parse(_)).toList)))
      access.wrote(facts.location, files)
    } catch {
      case failure: LakelogFailure =>
        unknown = failure.outcomeUnknown
        throw access.failures.ofTable(failure, access.ident)
    }
}

/** Hands the files to a staged table, which commits them with its metadata. */
private[lakelog] final class StagedCommit(write: JObject, keep: Seq[String] => Unit) extends FileCommit {

  override def filePrefix: String = FileCommit.prefix(write)

  override def outcomeUnknown: Boolean = false

  override def commit(operation: WriteOperation, files: Seq[String]): Unit = keep(files)
}

private[lakelog] object FileCommit {

  /** A file tells by its name, before any commit does, from which version its write started. */
  def prefix(write: JObject): String = f"${Json.long(write, "version")}%020d-${Json.string(write, "id")}"
}
