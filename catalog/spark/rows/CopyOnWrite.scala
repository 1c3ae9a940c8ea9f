package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.connector.distributions.Distribution
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowPlace}
import org.apache.spark.sql.lakelog.internals.seam.{MergeSummary, RowChanges, WriteSummary}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.read.{LakeScan, ScanUse}
import org.apache.spark.sql.lakelog.table.{LakeTable, MetadataColumns}
import org.apache.spark.sql.lakelog.write.Positions
import org.apache.spark.sql.types.CharType

/**
 * Rewrites those files in which a row may change, with all rows that are left of them.
 *
 * Spark looks first which files have rows that match (by the filter attribute `_file` of the scan), and reads then all rows
 * of these: no filter may keep a row of them from being read.
 */
private[lakelog] final class CopyOnWrite(table: LakeTable, kind: Command)
  extends RowOperation(table, kind, ScanUse.WholeFiles(firstLook = CopyOnWrite.canLookFirst(table, kind))) {

  /** Whether a MERGE leaves rows of a file with the task that has read them: see [[SmallSources]]. */
  @volatile var staysTogether: Boolean = false

  /** By what rows meet again that were read together. Small files meet others then, which large ones need not. */
  private def parted(scan: Option[LakeScan]): Seq[NamedReference] =
    if (kind != Command.MERGE || (staysTogether && scan.exists(_.meanFileBytes >= table.facts.targetFileBytes / 8))) Nil
    else Seq(fact(RowPlace.File))

  override def requiredMetadataAttributes(): Array[NamedReference] = MetadataColumns.all.map(fact).toArray

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val prepared = commit
    new WriteBuilder {
      override def build(): Write = new RewrittenRows(table, kind, info, parted(prepared.scan), prepared)
    }
  }
}

private object CopyOnWrite {

  /**
   * Without that first scan, more files are rewritten. It has to see what the statement sees: see [[SourcesOnce]], which is
   * part of the session extension. Spark pads texts of CHAR columns above the scan, and takes the padded column for the
   * scan's own when it looks for the files of a DELETE: then it finds no such column.
   */
  def canLookFirst(table: LakeTable, kind: Command): Boolean =
    EntranceNames.hasExtension && canLookPadded(table, kind)

  private def canLookPadded(table: LakeTable, kind: Command): Boolean =
    kind != Command.DELETE || !SettingInternals.readSideCharPadding ||
    !table.schema.existsRecursively(_.isInstanceOf[CharType])
}

/** What a scan has read together is written together; rows that have lost their places on the way meet again by `parted`. */
private final class RewrittenRows(
    table: LakeTable, kind: Command, info: LogicalWriteInfo, parted: Seq[NamedReference], commit: RowCommit)
  extends RowWrite(table, commit) {

  override def description(): String = s"lakelog rewritten files of ${table.name}"

  override def requiredDistribution(): Distribution = order.distribution(otherwise = parted)

  override def toBatch: BatchWrite = new RewriteBatch(table, kind, info, commit)
}

private final class RewriteBatch(table: LakeTable, kind: Command, info: LogicalWriteInfo, commit: RowCommit)
  extends RowBatch(table, commit) {

  override def createBatchWriterFactory(physical: PhysicalWriteInfo): DataWriterFactory = new RewriteTaskFactory(
    RowSettings.of(table, kind, info, physical.numPartitions, commit),
    PlaceOrdinals.in(info.metadataSchema.get, table.physical.metadata),
    twice = Some(commit.deciders).filter(_ => kind != Command.MERGE))

  override def commit(messages: Array[WriterCommitMessage]): Unit = replace(messages, None)

  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit =
    replace(messages, Some(summary))

  /** The files of the scan's last plan are gone: when Spark has learnt which ones matter, it has had it plan again. */
  private def replace(messages: Array[WriterCommitMessage], summary: Option[WriteSummary]): Unit = {
    val rows = written(messages)
    val kept = Positions.united(rows.flatMap(_.positions), Some(commit.deciders.contradiction(_)))
    val read = commit.scan.map(_.files.withRows)
    read.foreach(RewriteBatch.check(_, kept.keySet, summary.flatMap(RewriteBatch.rowsSeen), commit.deciders))
    // Without a first look, a DELETE reads files in which no row matches.
    if (kind == Command.DELETE && read.exists(_.totalRows == kept.values.map(_.getLongCardinality).sum)) abort(messages)
    else {
      val versionless = rows.map(_.updated).sum
      val areKnown = read.forall(files => files.indices.forall(files.version(_).isDefined))
      val updated =
        if (areKnown) Some(versionless) else summary.flatMap(RewriteBatch.updated).filter(_ <= versionless)
      commit.commit(read.toSeq.flatMap(_.paths), Map.empty, rows, updated)
    }
  }
}

private object RewriteBatch {

  /**
   * How many rows Spark says that were updated. Tasks that ran again may be counted twice; it is asked if copies cannot be
   * distinguished from updated rows, as rows that a transaction has added have no version until it commits.
   */
  def updated(summary: WriteSummary): Option[Long] = (summary match {
    case merge: MergeSummary => Some(merge.numTargetRowsUpdated)
    case other => RowChanges.ofUpdate(other).map(_._1)
  }).filter(_ >= 0)

  /** How many rows Spark says that it has read of the files; None if it does not know. */
  def rowsSeen(summary: WriteSummary): Option[Long] = {
    val counts = summary match {
      case merge: MergeSummary => Seq(merge.numTargetRowsCopied, merge.numTargetRowsDeleted, merge.numTargetRowsUpdated)
      case other => RowChanges.ofDelete(other).orElse(RowChanges.ofUpdate(other)).fold(Seq(-1L)) {
          case (changed, copied) => Seq(changed, copied)
        }
    }
    if (counts.forall(_ >= 0)) Some(counts.sum) else None
  }

  /**
   * What is removed must have been read, and what was read must be removed: a row would be lost or doubled otherwise. More
   * rows than there are come from tasks that ran again, and from joins.
   */
  def check(files: PlannedFiles, kept: Set[String], seen: Option[Long], deciders: Deciders): Unit = {
    val names = files.indices.map(files.name).toSet
    kept.find(!names(_)).foreach { file =>
      throw deciders.contradiction(s"Rows of $file were rewritten, which is not to be replaced")
    }
    seen.filter(_ < files.totalRows).foreach { rows =>
      throw deciders.contradiction(
        s"Files with ${files.totalRows} rows are to be replaced, of which only $rows were read")
    }
  }
}
