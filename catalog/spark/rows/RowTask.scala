package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{JoinedRow, SpecificInternalRow, UnsafeProjection}
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{DataWriter, DataWriterFactory, DeltaWriter, DeltaWriterFactory, LogicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.files.{RowFact, RowIds, RowPlace}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.files.RowInternals
import org.apache.spark.sql.lakelog.table.{LakeTable, MetadataColumns}
import org.apache.spark.sql.lakelog.write.{FilesWritten, IdentityValues, LakeDataWriter, Positions, WriteTasks, WriterSettings}
import org.apache.spark.sql.types.{DataType, LongType, StructType}

/** Where in a row that says where a row is, file and position are. */
private[lakelog] final case class PlaceOrdinals(file: Int, position: Int)

private[lakelog] object PlaceOrdinals {
  def in(schema: StructType, metadata: MetadataColumns): PlaceOrdinals = {
    def ordinal(fact: RowFact) = schema.fieldIndex(metadata.name(fact))
    PlaceOrdinals(ordinal(RowPlace.File), ordinal(RowPlace.Position))
  }
}

/**
 * How the rows of an operation are written. Metadata columns that the statement has asked for come along with the table's
 * columns, which are the `columns` of a row, of these `types`; None if a row has no others. `ids` says where the row's
 * id and version are in its metadata, -1 if one of them is not.
 */
private[lakelog] final case class RowSettings(
    files: WriterSettings, columns: Option[(Array[Int], Array[DataType])], ids: Array[Int]) {
  def writer(partitionId: Int, taskId: Long): RowWriter = new RowWriter(
    new LakeDataWriter(files, partitionId, s"$partitionId-$taskId"),
    columns.map { case (order, types) => RowInternals.reordering(order, types) }, ids)
}

private[lakelog] object RowSettings {

  /** For so many tasks. A DELETE makes no values: what it copies has some. */
  def of(table: LakeTable, kind: Command, info: LogicalWriteInfo, tasks: Int, commit: RowCommit): RowSettings = {
    val (metadata, rows) = (table.physical.metadata, info.schema)
    if (kind == Command.UPDATE) FactsInStatements.refuseUnseen(table, rows)
    val (own, types) = (metadata.without(rows), SchemaInternals.withoutCharVarchar(rows).fields.map(_.dataType))
    val columns = own.fieldNames.map(rows.fieldIndex)
    val known = info.metadataSchema.get
    RowSettings(
      WriteTasks.settings(
        table, own, commit.filePrefix,
        if (kind == Command.DELETE) Nil else IdentityValues.starts(table.identities, commit.nextValues, tasks),
        hasIds = true),
      Some((columns, types)).filter(_ => own.length < rows.length),
      RowIds.own.keys.toArray.map(fact => known.fieldNames.indexOf(metadata.name(fact))))
  }
}

/** Writes rows with the ids and versions that they bring along; new ones have none. */
private[lakelog] final class RowWriter(files: LakeDataWriter, columns: Option[UnsafeProjection], ids: Array[Int]) {

  private val own = new SpecificInternalRow(ids.toSeq.map(_ => LongType))
  private val version = RowIds.own.keys.toSeq.indexOf(RowIds.Version)
  private val whole = new JoinedRow

  def write(row: InternalRow): Unit = {
    var i = 0
    while (i < ids.length) {
      own.setNullAt(i)
      i += 1
    }
    writeWhole(row, isNew = true)
  }

  def write(metadata: InternalRow, row: InternalRow): Unit = {
    var i = 0
    while (i < ids.length) {
      if (ids(i) < 0 || metadata.isNullAt(ids(i))) own.setNullAt(i)
      else own.setLong(i, metadata.getLong(ids(i)))
      i += 1
    }
    writeWhole(row, isNew = false)
  }

  private def writeWhole(row: InternalRow, isNew: Boolean): Unit =
    files.put(whole(columns.fold(row)(_.apply(row)), own), isNew)

  /** Whether the row that was written last has a version, which an updated one has not. */
  def hadVersion: Boolean = !own.isNullAt(version)

  def metrics: Array[CustomTaskMetric] = files.currentMetricsValues()

  def commit(): FilesWritten = files.commit()
  def abort(): Unit = files.abort()
  def close(): Unit = files.close()
}

/** Writes rows, if the operation has any, and keeps count of those that are in other files. */
private[lakelog] abstract class RowTask(writer: Option[RowWriter], places: PlaceOrdinals)
  extends DataWriter[InternalRow] {

  private val positions = new Positions
  protected var (inserted, updated) = (0L, 0L)

  override def currentMetricsValues(): Array[CustomTaskMetric] = writer.fold(Array.empty[CustomTaskMetric])(_.metrics)

  /** Notes where a row is; false for one that was noted before. */
  protected def note(place: InternalRow): Boolean =
    positions.add(place.getUTF8String(places.file), place.getLong(places.position))

  override def write(row: InternalRow): Unit = {
    writer.get.write(row)
    inserted += 1
  }

  override def commit(): WriterCommitMessage = {
    val written = writer.map(_.commit()).getOrElse(FilesWritten(Array.empty, Array.empty))
    RowsWritten(written.files, positions.toMessage, written.values, inserted, updated)
  }

  override def abort(): Unit = writer.foreach(_.abort())

  override def close(): Unit = writer.foreach(_.close())
}

/**
 * Writes all rows that are left of some files, and new ones. `twice` has the error for a row that comes more than once.
 *
 * A row that is kept may, from a MERGE in which several rows of the source match it and no clause says what to do then.
 */
private[lakelog] final class RewriteTask(writer: RowWriter, places: PlaceOrdinals, twice: Option[Deciders])
  extends RowTask(Some(writer), places) {

  override def write(metadata: InternalRow, row: InternalRow): Unit =
    if (note(metadata)) {
      writer.write(metadata, row)
      if (!writer.hadVersion) updated += 1
    } else twice.foreach(deciders => throw deciders.contradiction("A row would be written twice"))
}

/** Writes new rows and those that take the place of others, and notes which rows are gone. */
private[lakelog] final class DeltaTask(writer: Option[RowWriter], places: PlaceOrdinals)
  extends RowTask(writer, places) with DeltaWriter[InternalRow] {

  /** Of several rows of a MERGE's source, each may delete the same row. */
  override def delete(metadata: InternalRow, id: InternalRow): Unit = note(id)

  override def update(metadata: InternalRow, id: InternalRow, row: InternalRow): Unit = {
    if (!note(id)) throw new IllegalStateException("A row would be updated twice")
    writer.get.write(metadata, row)
    updated += 1
  }

  override def insert(row: InternalRow): Unit = super[RowTask].write(row)

  override def write(row: InternalRow): Unit = insert(row)
}

private[lakelog] final class RewriteTaskFactory(settings: RowSettings, places: PlaceOrdinals, twice: Option[Deciders])
  extends DataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new RewriteTask(settings.writer(partitionId, taskId), places, twice)
}

/** Without settings, no rows are written. */
private[lakelog] final class DeltaTaskFactory(settings: Option[RowSettings], places: PlaceOrdinals)
  extends DeltaWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DeltaWriter[InternalRow] =
    new DeltaTask(settings.map(_.writer(partitionId, taskId)), places)
}
