package org.apache.spark.sql.lakelog.write

import org.apache.spark.TaskContext
import org.apache.spark.rdd.{RDD, UnionRDD}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, Descending, EqualNullSafe, Expression, Literal, Not, NullsFirst, NullsLast, ShiftRight, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, RepartitionByExpression, Sort}
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.lakelog.expressions.PartitionTransform
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowIds}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.files.{CurvePlace, JobInternals, RowInternals}
import org.apache.spark.sql.lakelog.read.FileReading
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** The jobs that write the rows of groups of files to files of their own. */
private[lakelog] object CompactRows {

  private def session: SparkSession = SparkSession.active

  /** How many files a job writes, so that there is work for all executors. */
  def filesAtOnce: Long = math.max(FilesAtOnce, 2 * session.sparkContext.defaultParallelism).toLong

  private val FilesAtOnce = 64

  /** Writes the live rows of these files for which the condition is not true, each file's to files of its own. */
  def without(
      table: LakeTable, files: PlannedFiles, condition: Expression, filePrefix: String,
      text: String): Seq[wire.DataFile] = {
    val groups = files.indices.map(i => CompactGroup(files.at(Array(i)), 0, 0, 0, tasks = 1, spread = false))
    val stay = Not(EqualNullSafe(condition, Literal.TrueLiteral))
    write(table, groups, filePrefix, table.facts.targetFileBytes, text, Some(Filter(stay, _))).flatten
  }

  /** Writes the live rows of each group, or what is `made` of them, to files of its own, and returns these. */
  def write(
      table: LakeTable, groups: Seq[CompactGroup], filePrefix: String, mostBytes: Long, text: String,
      made: Option[LogicalPlan => LogicalPlan] = None): Seq[Seq[wire.DataFile]] = {
    val context = session.sparkContext
    val own = SchemaInternals.asTexts(table.schema)
    val settings = WriteTasks.settings(table, own, filePrefix, hasIds = true).copy(targetBytes = mostBytes)
    JobInternals.described(text) {
      val (rows, owners) = new CompactRows(session, table, own, made).of(groups)
      val found = new Array[Seq[wire.DataFile]](owners.length)
      val cuts = owners.map(groups(_).cut)
      val task = (at: TaskContext, rows: Iterator[InternalRow]) =>
        CompactTask.write(settings, cuts(at.partitionId()), at, rows)
      try context.runJob(rows, task, owners.indices,
          (i: Int, files: Array[String]) => found(i) = files.toSeq.map(wire.DataFile.parsed))
      catch {
        case failed: Throwable =>
          WriteTasks.deleteFiles(table, found.toSeq.filter(_ != null).flatten)
          throw failed
      }
      groups.indices.map(group => owners.indices.filter(owners(_) == group).flatMap(found(_)))
    }
  }
}

/**
 * The rows of groups of files, in the order in which they are written, with their ids and versions behind `own` columns; or
 * what is `made` of them, which is then not apart by groups.
 */
private final class CompactRows(session: SparkSession, table: LakeTable, own: StructType,
    made: Option[LogicalPlan => LogicalPlan]) {

  private val facts = table.facts
  private val schema = StructType(own.fields ++ RowIds.own.keys.map(fact =>
    StructField(table.physical.metadata.name(fact), LongType)))
  private val reading = new FileReading(table, schema, Nil)

  /** All rows, and which group those of each task are of. */
  def of(groups: Seq[CompactGroup]): (RDD[InternalRow], IndexedSeq[Int]) = {
    val (spread, packed) = groups.indices.partition(groups(_).spread)
    val together = if (packed.isEmpty) Nil
    else {
      val rows = read(packed.map(groups(_).files))(files => Seq(fileByFile(files)))
      made match {
        case None => Seq((if (isSorted) arranged(rows)(sorted) else rows, packed))
        case Some(rowsOf) =>
          // Files of an earlier partitioning have rows of several partitions of today.
          val ordered = isSorted || facts.partitionFields.nonEmpty
          val left = arranged(rows) { plan =>
            val left = rowsOf(plan)
            if (ordered) sorted(left) else left
          }
          Seq((left, Seq.fill(left.getNumPartitions)(packed.head)))
      }
    }
    val apart = spread.map { i =>
      val rows = read(Seq(groups(i).files))(files => reading.partitions(files).toSeq.map(Seq(_)))
      val ranged = arranged(rows)(plan => sorted(ranges(plan, groups(i))))
      (ranged, Seq.fill(ranged.getNumPartitions)(i))
    }
    val all = together ++ apart
    (new UnionRDD(session.sparkContext, all.map(_._1)), all.flatMap(_._2).toIndexedSeq)
  }

  private def fileByFile(files: PlannedFiles): Seq[InputPartition] =
    files.indices.flatMap(i => reading.partitions(files.at(Array(i)), FileReading.WholeFiles))

  /** The rows of some files, in the tasks that are made of them, each of several partitions. */
  private def read(files: Seq[PlannedFiles])(tasks: PlannedFiles => Seq[Seq[InputPartition]]): RDD[InternalRow] = {
    val readers = files.map(reading.factory).last // which reads those before it, too
    JobInternals.read(files.flatMap(tasks), readers)
  }

  private def arranged(rows: RDD[InternalRow])(how: LogicalPlan => LogicalPlan): RDD[InternalRow] =
    JobInternals.rows(how(JobInternals.plan(rows, schema)))

  private def isSorted: Boolean = facts.clustering.nonEmpty || facts.sortFields.nonEmpty

  private def sorted(plan: LogicalPlan): LogicalPlan = {
    val byOrder = facts.sortFields.map { field =>
      SortOrder(
        value(plan, field.transform, field.column), if (field.ascending) Ascending else Descending,
        if (field.nullsFirst) NullsFirst else NullsLast, Nil)
    }
    Sort(places(plan) ++ (if (facts.curve.isEmpty) Nil else clustered(plan)) ++ byOrder, global = false, plan)
  }

  /** Places of one cell go to one task: files that end where cells do reach into none of one another on the curve. */
  private def ranges(plan: LogicalPlan, group: CompactGroup): LogicalPlan = {
    val bits = java.lang.Long.numberOfTrailingZeros(group.cell)
    RepartitionByExpression(places(plan, ShiftRight(_, Literal(bits))), plan, group.tasks)
  }

  /** By what rows belong into one file or another. */
  private def places(plan: LogicalPlan, coarse: Expression => Expression = identity): Seq[SortOrder] = {
    val byPartition = facts.partitionFields.map(field => value(plan, field.transform, field.column))
    ascending(byPartition) ++ facts.curve.fold(clustered(plan))(curve =>
      ascending(Seq(coarse(CurvePlace(curve, curve.columns.map(RowInternals.value(_, column(plan))))))))
  }

  private def clustered(plan: LogicalPlan): Seq[SortOrder] =
    ascending(facts.clustering.map(RowInternals.value(_, column(plan))))

  private def ascending(values: Seq[Expression]): Seq[SortOrder] = values.map(SortOrder(_, Ascending, NullsFirst, Nil))

  private def value(plan: LogicalPlan, transform: PartitionTransform, path: Seq[String]): Expression =
    RowInternals.transformed(transform, path, column(plan))

  private def column(plan: LogicalPlan)(name: String): Attribute = plan.output.find(_.name == name).get
}

/** What one task of a compaction does. */
private object CompactTask {

  def write(
      settings: WriterSettings, cut: Option[Long], context: TaskContext, rows: Iterator[InternalRow]): Array[String] = {
    val writer = new LakeDataWriter(
      settings, context.partitionId(), s"${context.partitionId()}-${context.taskAttemptId()}", cut)
    try {
      rows.foreach(writer.write)
      writer.commit().files
    } catch {
      case failed: Throwable =>
        writer.abort()
        throw failed
    }
  }
}
