package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.write.{BatchWrite, DataWriterFactory, LogicalWriteInfo, PhysicalWriteInfo, WriterCommitMessage}

/** The files that one task wrote, as the JSON of data files, and what it took of identity columns. */
private[lakelog] final case class FilesWritten(files: Array[String], values: Array[IdentityTaken])
  extends WriterCommitMessage

/** The driver's part of a write: it prepares the tasks and commits their files at once. */
private[lakelog] final class LakeBatchWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit) extends BatchWrite {

  override def createBatchWriterFactory(physical: PhysicalWriteInfo): DataWriterFactory = {
    val facts = table.facts
    val schema = SparkInternals.withoutCharVarchar(info.schema)
    val fileSchema = table.physical.forWrite(schema)
    val settings = SparkInternals.parquetWrite(
      fileSchema, facts.compressionCodec, SparkInternals.hadoopConf(table.facts.location, table.access.hadoopSettings))
    new LakeWriterFactory(WriterSettings(
      settings, facts.location, commit.filePrefix, facts.specId, schema, facts.partitionFields, table.physical.leaves,
      facts.targetFileBytes, IdentityValues.starts(table.identities, nextValues, physical.numPartitions), table.access.options.get("fsync").forall(_ != "off")))
  }

  private lazy val nextValues = if (table.identities.isEmpty) Map.empty[Long, BigInt] else commit.nextValues

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    val taken = messages.toSeq.collect { case written: FilesWritten => written.values }.flatten
    commit.commit(operation, filesOf(messages), IdentityValues.toJson(table.identities, nextValues, taken))
  }

  /** Removes the files, unless they may have become part of the table: a failed commit may have happened. */
  override def abort(messages: Array[WriterCommitMessage]): Unit = if (!commit.outcomeUnknown) {
    val configuration = SparkInternals.hadoopConf(table.facts.location, table.access.hadoopSettings)
    DataFiles.deleteAll(table.facts.location, filesOf(messages), configuration)
  }

  private def filesOf(messages: Array[WriterCommitMessage]): Seq[String] =
    messages.toSeq.collect { case written: FilesWritten => written.files }.flatten
}
