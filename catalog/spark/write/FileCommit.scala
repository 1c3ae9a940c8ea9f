package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JInt, JNull, JObject, JString}

/** What becomes of the files that the tasks have written. */
private[lakelog] trait FileCommit {

  /** What the names of the write's files begin with: its version and id. Made once, before the first task starts. */
  def filePrefix: String

  /** The next value of each identity column, by the column's id. */
  def nextValues: Map[Long, BigInt]

  /** Takes over the files, as the JSON of data files, and what was taken of identity columns for their rows. */
  def commit(operation: WriteOperation, files: Seq[String], values: List[JObject]): Unit

  /** Whether files may have been taken over, also when [[commit]] failed. */
  def mayHaveHappened: Boolean
}

/**
 * Commits files to a table that is there. Those of a [[batch]] of a stream (as JSON) that the table has already are
 * deleted.
 */
private[lakelog] class TableCommit(access: TableAccess, facts: TableFacts, numbered: Option[JObject] = None)
  extends FileCommit {

  protected def batch: Option[JObject] = numbered

  protected def begin(): JObject = access.call("begin_write", facts.reference)

  private lazy val begun = begin()
  private lazy val write = new TableWrite(
    access, facts.referenceOf(Json.get(begun, "version").map(_ => Json.long(begun, "version")).getOrElse(facts.version)),
    begun)

  override def filePrefix: String = write.filePrefix

  override def nextValues: Map[Long, BigInt] = Json.objects(begun, "identities").map { column =>
    Json.long(column, "column") -> Json.get(column, "next").collect { case JInt(next) => next }.get
  }.toMap

  override def mayHaveHappened: Boolean = write.mayHaveHappened

  override def commit(operation: WriteOperation, files: Seq[String], values: List[JObject]): Unit =
    if (operation.name == WriteOperation.Merge) {
      write.commit(
        "commit_rows", files,
        "operation" -> JString(operation.name), "condition" -> operation.filter.getOrElse(JNull),
        "removed" -> JArray(Nil), "deletes" -> JArray(Nil), "values" -> JArray(values))
      access.wrote(facts.location, files)
    } else {
      val answer = write.commit(
        "commit_write", files,
        "operation" -> JString(operation.name), "filter" -> operation.filter.getOrElse(JNull),
        "deletes" -> operation.cut,
        "batch" -> batch.getOrElse(JNull), "values" -> JArray(values))
      if (Json.bool(answer, "written")) access.wrote(facts.location, files)
      else DataFiles.deleteAll(
        facts.location, files, SettingInternals.hadoopConf(facts.location, access.hadoopSettings))
    }
}

/** Hands the files to a staged table, which commits them with its metadata. */
private[lakelog] final class StagedCommit(write: JObject, keep: Seq[String] => Unit) extends FileCommit {

  override def filePrefix: String = FileCommit.prefix(write)

  /** Rows that come with the creation of a table have none. */
  override def nextValues: Map[Long, BigInt] = Map.empty

  override def mayHaveHappened: Boolean = false

  override def commit(operation: WriteOperation, files: Seq[String], values: List[JObject]): Unit = keep(files)
}

private[lakelog] object FileCommit {

  /** A file tells by its name, before any commit does, from which version its write started. */
  def prefix(write: JObject): String = f"${Json.long(write, "version")}%020d-${Json.string(write, "id")}"
}
