package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.write.{BatchWrite, DataWriterFactory, LogicalWriteInfo, MergeSummary, PhysicalWriteInfo, WriterCommitMessage, WriteSummary}
import org.apache.spark.sql.types.StructType

/** The files that one task wrote, as the JSON of data files, and what it took of identity columns. */
private[lakelog] final case class FilesWritten(files: Array[String], values: Array[IdentityTaken])
  extends WriterCommitMessage

/** The driver's part of a write: it prepares the tasks and commits their files at once. */
private[lakelog] final class LakeBatchWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit) extends BatchWrite {

  private val together = ReadTogether.known(table)

  override def createBatchWriterFactory(physical: PhysicalWriteInfo): DataWriterFactory = new LakeWriterFactory(
    LakeBatchWrite.settings(
      table, info.schema, commit.filePrefix,
      IdentityValues.starts(table.identities, nextValues, physical.numPartitions)))

  private lazy val nextValues = if (table.identities.isEmpty) Map.empty[Long, BigInt] else commit.nextValues

  override def commit(messages: Array[WriterCommitMessage]): Unit = commit(messages, operation)

  /**
   * A MERGE that only adds rows is an append to Spark. But it adds them as there are none like them, which must stay true.
   */
  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit = summary match {
    case _: MergeSummary =>
      commit(messages,
        WriteOperation(WriteOperation.Merge, together.flatMap(all => RowCommit.condition(table, all.filters(table)))))
    case _ => commit(messages, operation)
  }

  private def commit(messages: Array[WriterCommitMessage], as: WriteOperation): Unit = {
    val taken = messages.toSeq.collect { case written: FilesWritten => written.values }.flatten
    val cut = as.replaced.flatMap(CutRows.find(table, _, commit.filePrefix))
    try commit.commit(as.copy(cut = cut), filesOf(messages), IdentityValues.united(table.identities, nextValues, taken))
    catch {
      case failed: Throwable =>
        if (!commit.mayHaveHappened) LakeBatchWrite.deleteFiles(table, cut.flatMap(_.copies).getOrElse(Nil))
        throw failed
    }
  }

  /** Removes the files, unless they may have become part of the table. */
  override def abort(messages: Array[WriterCommitMessage]): Unit =
    if (!commit.mayHaveHappened) LakeBatchWrite.deleteFiles(table, filesOf(messages))

  private def filesOf(messages: Array[WriterCommitMessage]): Seq[wire.DataFile] =
    messages.toSeq.collect { case written: FilesWritten => written.files }.flatten.map(wire.DataFile.parsed)
}

private[lakelog] object LakeBatchWrite {

  /**
   * What the tasks need to know that write rows of that schema to files whose names begin so; `identities` say where the
   * values begin of columns that are to be filled. With `hasIds`, rows bring their ids and versions along, behind the columns
   * of the schema.
   */
  def settings(
      table: LakeTable, rows: StructType, filePrefix: String, identities: Seq[IdentityStart] = Nil,
      hasIds: Boolean = false): WriterSettings = {
    val facts = table.facts
    val schema = SchemaInternals.withoutCharVarchar(rows)
    val ids = if (hasIds) RowIds.own.values.toSeq else Nil
    val settings = WriteInternals.parquetWrite(
      StructType(table.physical.forWrite(schema).fields ++ ids), facts.compressionCodec,
      SettingInternals.hadoopConf(facts.location, table.access.hadoopSettings), table.bloomSettings)
    WriterSettings(
      settings, facts.location, filePrefix, facts.specId, schema, ids, facts.partitionFields, table.physical.leaves,
      facts.targetFileBytes, identities, facts.curve, table.access.options.get("fsync").forall(_ != "off"))
  }

  /** Deletes files that are in no commit for certain. */
  def deleteFiles(table: LakeTable, files: Seq[wire.DataFile]): Unit = DataFiles.deleteAll(
    table.facts.location, files, SettingInternals.hadoopConf(table.facts.location, table.access.hadoopSettings))
}
