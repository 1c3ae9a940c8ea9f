package org.apache.spark.sql.lakelog.session

import org.apache.spark.sql.connector.catalog.Column
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.lakelog.columns.{GeneratedColumns, IdentityColumns}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.names.SavedPlace
import org.apache.spark.sql.lakelog.partitions.LakePartitions
import org.apache.spark.sql.lakelog.read.{LakeScan, LakeScanBuilder, RowsWanted, StreamOptions}
import org.apache.spark.sql.lakelog.refs.SessionBranch
import org.apache.spark.sql.lakelog.rows.LakeRows
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether, TableAccess, TableFacts, TableToBeFilled}
import org.apache.spark.sql.lakelog.words.ForeignOptions
import org.apache.spark.sql.lakelog.write.{BatchCommit, LakeWriteBuilder, NumberedWrites, RefreshCommit, StreamPreparation, TableCommit}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A table as Spark reads and writes it: what makes its scans, its writes, and changes of its rows and partitions. */
private[lakelog] class SparkTable(access: TableAccess, facts: TableFacts)
  extends LakeTable(access, facts) with LakePartitions with LakeRows {

  override private[lakelog] def same(access: TableAccess, facts: TableFacts): LakeTable = new SparkTable(access, facts)

  override def written: LakeTable = SessionBranch.written(this, CaseInsensitiveStringMap.empty)

  override def toBeFilled: LakeTable =
    if (identities.isEmpty) this else new FilledTable(access, facts, changesRows = false)

  override def toBeChanged: LakeTable =
    if (!makesValues) this else new FilledTable(access, facts, changesRows = true)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    refuseUnknownInRead(options)
    refuseStreaming()
    new LakeScanBuilder(this, ReadTogether.joined(this), options)
  }

  override private[lakelog] def refuseUnknownInRead(options: CaseInsensitiveStringMap): Unit =
    refuseUnknown(options, "read", readOptions ++ StreamOptions.Names)

  override private[lakelog] def refuseUnknownInWrite(options: CaseInsensitiveStringMap): Unit =
    refuseUnknown(options, "write", NumberedWrites.Names + SessionBranch.OptionName)

  /** Those that have chosen the version already which this is. */
  private def readOptions: Set[String] =
    if (facts.past) SparkTable.ReadOptions ++ ForeignOptions.OfPlaces else SparkTable.ReadOptions

  override def bytes(options: CaseInsensitiveStringMap): Long = {
    val columns = SchemaInternals.withoutCharVarchar(schema)
    val all = new LakeScan(this, ReadTogether.joined(this), RowsWanted(columns), options)
    all.estimateStatistics().sizeInBytes().getAsLong
  }

  override def newWriteBuilder(info: LogicalWriteInfo): LakeWriteBuilder = {
    refuseStreaming()
    refuseTag()
    SparkTable.writeBuilder(SessionBranch.written(this, info.options), info)
  }
}

private[lakelog] object SparkTable {

  /** Spark has obeyed these before it asks for a scan. */
  private val ReadOptions = Set("versionasof", "timestampasof")

  /** A write to a table, which may be on another branch than the one that was named. */
  private def writeBuilder(table: LakeTable, info: LogicalWriteInfo): LakeWriteBuilder = {
    table.refuseUncomputed()
    SavedPlace.checkCatalog(table.access.ident, table.access.catalog, info.options)
    IdentityColumns.refuseGiven(table.identities, info.schema)
    val commit = StreamPreparation.prepared(info.schema) match {
      case Some(prepared) =>
        table.refuseUnknown(info.options, "write", StreamPreparation.Options + SessionBranch.OptionName)
        new BatchCommit(table, info.queryId, prepared)
      case None if info.options.containsKey("checkpointLocation") => throw StreamPreparation.withoutExtension(table)
      case None =>
        table.refuseUnknownInWrite(info.options)
        table.access.refresh.fold(new TableCommit(table.access, table.facts, NumberedWrites.batch(info.options)))(
          new RefreshCommit(table.access, table.facts, _))
    }
    val builder = new LakeWriteBuilder(table, info, commit)
    if (table.access.refresh.isDefined) builder.truncate()
    builder
  }
}

private[lakelog] final class FilledTable(access: TableAccess, facts: TableFacts, override val changesRows: Boolean)
  extends SparkTable(access, facts) with TableToBeFilled {

  override private[lakelog] def same(access: TableAccess, facts: TableFacts): LakeTable =
    new FilledTable(access, facts, changesRows)

  override def toBeRead: LakeTable = new SparkTable(access, facts)

  override def schema: StructType = filled(physical.logical)

  override def columns: Array[Column] = {
    val columns = columnsOf(filled(physical.identified))
    if (changesRows) columns else GeneratedColumns.describe(columns, facts.schema)
  }

  private def filled(columns: StructType): StructType = {
    val numbered = IdentityColumns.toBeFilled(columns, facts.schema)
    if (changesRows) GeneratedColumns.toBeFilled(numbered, facts.schema) else numbered
  }
}
