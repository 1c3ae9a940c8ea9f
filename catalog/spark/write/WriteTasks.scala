package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.lakelog.files.{DataFiles, RowIds}
import org.apache.spark.sql.lakelog.internals.{SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.files.WriteInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** What tasks that write rows of a table are given, and what becomes of their files if they are of no use. */
private[lakelog] object WriteTasks {

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
