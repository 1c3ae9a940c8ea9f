package org.apache.spark.sql.lakelog.procedures

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Project}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.columns.CheckPredicates
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowPlace}
import org.apache.spark.sql.lakelog.internals.{PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.{FooterInternals, JobInternals}
import org.apache.spark.sql.lakelog.read.FileReading
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{CompactRows, TableWrite}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Finds rows in any files of a table, whether a version has them or none, and writes those files anew without them. Python
 * says which files, and what is looked for.
 */
private[lakelog] object RowsJob {

  /** How many of these rows each file has; -1 of one that is no whole file, or lacks what they are known by. */
  def count(job: wire.CountRows, table: LakeTable, files: PlannedFiles): wire.RowsCounted = {
    val known = if (job.stored.isEmpty) files.indices.toArray else readable(job, table, files)
    val found = JobInternals.described(job.text)(matching(job, table, files.at(known)))
    val counts = Array.fill(files.length)(Unknown)
    known.foreach(i => counts(i) = found.getOrElse(files.name(i), 0L))
    wire.RowsCounted(counts.toSeq)
  }

  /** The files that say of themselves that they have all of the columns. */
  private def readable(job: wire.CountRows, table: LakeTable, files: PlannedFiles): Array[Int] = {
    val has = JobInternals.described(s"${job.text}: what columns they have") {
      FooterInternals.haveColumns(files.indices.map(files.file), job.stored, table.access.hadoopSettings)
    }
    files.indices.filter(has).toArray
  }

  private def matching(job: wire.CountRows, table: LakeTable, files: PlannedFiles): Map[String, Long] =
    if (files.isEmpty) Map.empty
    else {
      val predicate = toSpark(job.predicate)
      val places = Seq(RowPlace.File, RowPlace.Position).map(fact =>
        StructField(table.physical.metadata.name(fact), fact.dataType))
      val columns = StructType(table.schema.fields.filter(field => job.columns.contains(field.name)))
      val schema = StructType(SchemaInternals.withoutCharVarchar(columns).fields ++ places)
      val reading = new FileReading(table, schema, if (job.whole) Nil else Seq(predicate))
      val readers = reading.factory(files)
      val parts = reading.partitions(files).toSeq.map(Seq(_))
      val read = JobInternals.plan(JobInternals.read(parts, readers), schema)
      val wanted = Project(
        Seq(UnresolvedAttribute.quoted(places.head.name)), Filter(condition(predicate), read))
      SparkSession.active.sparkContext.runJob(JobInternals.rows(wanted), counted).toSeq.flatten
        .groupMapReduce(_._1)(_._2)(_ + _)
    }

  private val counted = (rows: Iterator[InternalRow]) => {
    val found = mutable.Map.empty[UTF8String, Long]
    rows.foreach { row =>
      val file = row.getUTF8String(0)
      if (found.contains(file)) found(file) += 1 else found(file.copy()) = 1L
    }
    found.iterator.map { case (file, count) => file.toString -> count }.toSeq
  }

  /** The rows that stay, in new files that no version has yet. */
  def copy(job: wire.CopyRows, table: LakeTable, files: PlannedFiles): wire.RowsCopied = wire.RowsCopied(
    CompactRows.without(table, files, condition(toSpark(job.predicate)), TableWrite.prefix(job.write), job.text))

  /** What Python has put in words that Spark takes as they are meant. */
  private def toSpark(predicate: wire.Expression): Predicate = CheckPredicates.toSpark(predicate).getOrElse(
    throw new IllegalStateException(s"Spark has no condition such as $predicate"))

  private def condition(predicate: Predicate): Expression = PlanInternals.condition(predicate).getOrElse(
    throw new IllegalStateException(s"Spark cannot evaluate $predicate"))

  private val Unknown = -1L
}
