package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.table.{FileNames, LakeTable}
import org.apache.spark.sql.lakelog.wire

/**
 * The files that one scan reads, by all filters that are known so far. They are planned when they are first needed, and
 * again if there are more filters by then, or if another version is read.
 */
private[lakelog] final class ScanFiles(table: LakeTable, wanted: RowsWanted, keyed: KeyedFiles, metrics: PlanMetrics) {

  private val facts = table.facts
  private val metadata = table.physical.metadata

  @volatile private var atRunTime: Seq[Predicate] = Nil
  @volatile private var ofKeys: Seq[Predicate] = Nil
  private var planned: Option[(Long, Seq[Predicate], PlannedFiles)] = None

  /** Takes the filters that a join has found while it runs, in place of those that it had found before. */
  def filter(predicates: Seq[Predicate]): Unit = atRunTime = predicates

  /** Takes the filters of rows that a MERGE looks for. */
  def look(predicates: Seq[Predicate]): Unit = ofKeys = predicates

  /** The filters that are known later than the scan is. */
  def later: Seq[Predicate] = ofKeys ++ atRunTime

  def of(version: Long): PlannedFiles = synchronized {
    val predicates = wanted.predicates ++ atRunTime ++ ofKeys
    planned match {
      case Some((`version`, `predicates`, files)) => files
      case _ =>
        val files = plan(version, predicates)
        planned = Some((version, predicates, files))
        files
    }
  }

  /** Those of the files that have as many rows as are wanted. */
  def limited(files: PlannedFiles): PlannedFiles = wanted.limit.fold(files)(files.first)

  private def plan(version: Long, predicates: Seq[Predicate]): PlannedFiles =
    table.access.failures.table(table.access.ident) {
      val (ofFiles, ofRows) = predicates.partition(FileNames.areIn(_, metadata))
      val request =
        wire.PlanFiles(facts.referenceOf(version), Predicates.toPython(ofRows), wanted.top.map(_.asked), keyed.fieldIds)
      val begun = System.nanoTime()
      val (answer, found) = table.access.channel.withFiles(request, facts.location, keyed.types)
      val files = ofFiles.foldLeft(found)((files, predicate) => FileNames.matching(files, predicate, metadata))
      metrics.planned(answer, found.length, files.length, limited(files).length, System.nanoTime() - begun)
      files
    }
}
