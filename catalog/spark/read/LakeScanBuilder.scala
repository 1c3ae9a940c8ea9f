package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownLimit, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Collects what a query wants of a table.
 *
 * Every filter is kept for choosing files and row groups, and given back too, for Spark to apply to the rows.
 */
private[lakelog] final class LakeScanBuilder(
    table: LakeTable, together: ReadTogether, options: CaseInsensitiveStringMap, use: ScanUse = ScanUse.Query,
    built: LakeScan => Unit = _ => ())
  extends ScanBuilder
  with SupportsPushDownV2Filters
  with SupportsPushDownRequiredColumns
  with SupportsPushDownLimit {

  private var predicates: Array[Predicate] = Array.empty
  private var required: StructType = SparkInternals.withoutCharVarchar(table.schema)
  private var limit: Option[Int] = None

  override def pushPredicates(pushed: Array[Predicate]): Array[Predicate] = {
    predicates = pushed
    pushed
  }

  override def pushedPredicates(): Array[Predicate] = predicates

  override def pruneColumns(columns: StructType): Unit = required = columns

  /** Spark asks only where no filter is left to apply, so the first files with enough rows will do. */
  override def pushLimit(rows: Int): Boolean = {
    limit = Some(rows)
    true
  }

  override def isPartiallyPushed: Boolean = true

  override def build(): Scan = {
    val scan = new LakeScan(table, together, required, predicates.toSeq, limit, options, use)
    together.reads(scan)
    built(scan)
    scan
  }
}
