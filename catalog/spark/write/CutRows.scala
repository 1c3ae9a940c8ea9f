package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Project}
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowPlace}
import org.apache.spark.sql.lakelog.internals.{SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.files.JobInternals
import org.apache.spark.sql.lakelog.read.FileReading
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{StructField, StructType}

/**
 * Finds by a job which rows an overwrite replaces in files that hold others too, and copies these others by a second one
 * if the table deletes by copying. Python says which files these are, and would read and write them itself, one after the
 * other.
 */
private[lakelog] object CutRows {

  /** The rows by their files; None if Python has to find them, as Spark has no such condition. */
  def find(table: LakeTable, replaced: RowsToReplace, filePrefix: String): Option[Cut] = replaced.condition.map {
    condition =>
      val files = plan(table, replaced.filter)
      if (files.isEmpty) Cut(Nil, None)
      else {
        val paths = files.indices.map(i => files.name(i) -> files.path(i)).toMap
        val rows = RowsSeen.positions(
          Positions.united(matching(table, files, replaced, condition), Some(new IllegalStateException(_))), paths)
        val isCopying = rows.nonEmpty && table.facts.writeModes.get("delete").contains("copy-on-write")
        Cut(rows, if (isCopying) Some(copied(table, files, rows.map(_.path).toSet, condition, filePrefix)) else None)
      }
  }

  /** The columns of these names, as the statement spells them. */
  private def named(table: LakeTable, names: Set[String]): Seq[StructField] =
    table.schema.fields.toSeq.filter(field => names.exists(SettingInternals.resolver(_, field.name)))

  private def plan(table: LakeTable, filter: wire.Expression): PlannedFiles =
    table.access.failures.table(table.access.ident) {
      val request = wire.PlanCut(table.facts.reference, filter)
      table.access.channel.files(request, table.facts.location)
    }

  private def matching(
      table: LakeTable, files: PlannedFiles, replaced: RowsToReplace, condition: Expression): Seq[FilePositions] = {
    val metadata = table.physical.metadata
    val places = Seq(RowPlace.File, RowPlace.Position).map(fact => StructField(metadata.name(fact), fact.dataType))
    val columns = SchemaInternals.asTexts(StructType(named(table, replaced.columns)))
    val schema = StructType(columns.fields ++ places)
    val text = s"lakelog overwrite of ${table.name}: rows to be replaced in ${files.length} files"
    JobInternals.described(text) {
      val reading = new FileReading(table, schema, replaced.predicates)
      val readers = reading.factory(files)
      val parts = reading.partitions(files).toSeq.map(Seq(_))
      val read = JobInternals.plan(JobInternals.read(parts, readers), schema)
      val wanted = Project(
        places.map(place => UnresolvedAttribute.quoted(place.name)), Filter(condition, read))
      SparkSession.active.sparkContext.runJob(JobInternals.rows(wanted), positions).toSeq.flatten
    }
  }

  /** Writes the rows of these of the files for which the condition is not true, each file's to files of its own. */
  private def copied(
      table: LakeTable, files: PlannedFiles, paths: Set[String], condition: Expression,
      filePrefix: String): Seq[wire.DataFile] = {
    val touched = files.at(files.indices.filter(i => paths(files.path(i))).toArray)
    val text = s"lakelog overwrite of ${table.name}: copies of the rows that stay in ${touched.length} files"
    CompactRows.without(table, touched, condition, filePrefix, text)
  }

  private val positions = (rows: Iterator[InternalRow]) => {
    val found = new Positions
    rows.foreach(row => found.add(row.getUTF8String(0), row.getLong(1)))
    found.toMessage
  }
}
