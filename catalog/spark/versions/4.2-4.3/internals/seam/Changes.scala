package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.analysis.{ChangelogContextUtils, RelationChanges, UnresolvedRelation}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.connector.catalog.{Changelog, ChangelogContext, Identifier, TableCatalog}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.datasources.v2.{ChangelogTable, DataSourceV2Relation}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The ways in which changes of a row are left out. */
private[lakelog] object DeduplicationMode {
  val NONE: ChangelogContext.DeduplicationMode = ChangelogContext.DeduplicationMode.NONE
  val NET_CHANGES: ChangelogContext.DeduplicationMode = ChangelogContext.DeduplicationMode.NET_CHANGES
}

/** Changes of tables in Spark's plans. */
private[lakelog] object Changes {

  /** Whether Spark itself leaves out rows that were only copied, and finds those that were updated. */
  val areComparedBySpark: Boolean = true

  /** How users read changes into a DataFrame, and as a stream. */
  val (read, readStream) = ("spark.read.changes", "spark.readStream.changes")

  /** The changes of the table of that name that options describe, as those of a DataFrame's reader do. */
  def asked(name: UnresolvedRelation, options: CaseInsensitiveStringMap, timeZone: String): LogicalPlan =
    RelationChanges(name, ChangelogContextUtils.fromOptions(options, timeZone))

  /** Changes as they are stored, for those that were asked for. */
  def raw(asked: ChangelogContext): ChangelogContext =
    new ChangelogContext(asked.range, DeduplicationMode.NONE, false)

  /** The changes of a table that a statement names. */
  object Named {
    def unapply(plan: LogicalPlan): Option[(UnresolvedRelation, ChangelogContext)] = plan match {
      case RelationChanges(named: UnresolvedRelation, asked) => Some(named -> asked)
      case _ => None
    }

    def apply(named: UnresolvedRelation, asked: ChangelogContext): LogicalPlan = RelationChanges(named, asked)
  }

  /** The changes that a leaf of a plan reads. */
  object Read {
    def unapply(plan: LogicalPlan): Option[Changelog] = plan match {
      case StreamingRelationV2(_, _, table: ChangelogTable, _, _, _, _, _, _) => Some(table.changelog)
      case DataSourceV2Relation(table: ChangelogTable, _, _, _, _, _) => Some(table.changelog)
      case _ => None
    }
  }

  /** Updates cannot be found among changes with rows that were only copied. */
  def refuseCopies(name: String): Nothing =
    throw QueryCompilationErrors.cdcUpdateDetectionRequiresCarryOverRemoval(name)

  /** The changes that another catalog has of its table. */
  def load(
      catalog: TableCatalog, ident: Identifier, context: ChangelogContext,
      options: CaseInsensitiveStringMap): Changelog = catalog.loadChangelog(ident, context, options)
}
