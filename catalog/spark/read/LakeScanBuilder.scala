package org.apache.spark.sql.lakelog.read

import scala.collection.mutable

import org.apache.spark.sql.connector.expressions.SortOrder
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownAggregates, SupportsPushDownLimit, SupportsPushDownRequiredColumns, SupportsPushDownTopN, SupportsPushDownV2Filters}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.plans.MergeKeys
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Collects what a query wants of a table.
 *
 * Every filter is kept for choosing files and row groups, and given back too, for Spark to apply to the rows. A scan that
 * does not count reads what another one of the statement reads.
 */
private[lakelog] final class LakeScanBuilder(
    table: LakeTable, together: ReadTogether, options: CaseInsensitiveStringMap, use: ScanUse = ScanUse.Query,
    built: LakeScan => Unit = _ => (), counts: Boolean = true)
  extends ScanBuilder
  with SupportsPushDownV2Filters
  with SupportsPushDownRequiredColumns
  with SupportsPushDownAggregates
  with SupportsPushDownTopN
  with SupportsPushDownLimit {

  private var predicates: Array[Predicate] = Array.empty
  private var required: StructType = SchemaInternals.withoutCharVarchar(table.schema)
  private var limit: Option[Int] = None
  private var top: Option[TopRows] = None
  private var aggregates: Option[AggregateScan] = None

  override def pushPredicates(pushed: Array[Predicate]): Array[Predicate] = {
    predicates = pushed.filter(table.knows)
    pushed
  }

  /** Spark logs these. */
  override def pushedPredicates(): Array[Predicate] = predicates.filter(Predicates.isPrintable)

  override def pruneColumns(columns: StructType): Unit = required = columns

  /** Spark asks only if no filter is left to apply, so the first files with enough rows will do. */
  override def pushLimit(rows: Int): Boolean = {
    limit = Some(rows)
    true
  }

  /** As with a limit; Spark sorts what is read. */
  override def pushTopN(orders: Array[SortOrder], rows: Int): Boolean = {
    top = TopRows.of(orders, rows).filter(wanted => table.schema.fieldNames.contains(wanted.column))
    top.isDefined
  }

  override def isPartiallyPushed: Boolean = true

  /** Spark asks only if no filter is left to apply, which are all of them. */
  override def supportCompletePushDown(wanted: Aggregation): Boolean =
    fromMetadata(wanted).isDefined

  override def pushAggregation(wanted: Aggregation): Boolean = {
    aggregates = fromMetadata(wanted)
    aggregates.isDefined
  }

  private def fromMetadata(wanted: Aggregation): Option[AggregateScan] =
    if (predicates.nonEmpty || use != ScanUse.Query) None
    else AggregateScan.asked(wanted, table).map { asked =>
      scansOfMetadata.getOrElseUpdate(asked, new AggregateScan(table, together, asked))
    }.filter(_.isPossible)

  /** Spark asks whether an aggregation is possible, and then pushes it: each is asked of Python once. */
  private val scansOfMetadata = mutable.Map.empty[AggregateScan.Asked, AggregateScan]

  /** For conflicts, a query that takes aggregates from metadata has read all rows. */
  override def build(): Scan = {
    val keys = MergeKeys.known(table)
    val scan = new LakeScan(
      table, together, RowsWanted(required, predicates.toSeq, limit, top, use), options, keys)
    if (counts) together.reads(table, predicates.toSeq)
    built(scan)
    aggregates.foreach(_ => StreamOptions.refuseInBatch(options))
    aggregates.getOrElse(scan)
  }
}
