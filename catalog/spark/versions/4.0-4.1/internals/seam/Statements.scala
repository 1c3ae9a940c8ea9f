package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{DescribeRelation, LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog, TableWritePrivilege}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.v2.{DescribeTableExec, ShowTablesExec}

/** Statements as Spark's plans have them. */
private[lakelog] object Statements {

  /** The id of the query that this thread runs: Spark gives it a number only, which is unique in the application. */
  def queryId(context: SparkContext): Option[String] = Option(context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))

  /** A table that is named to be written. */
  def toWrite(named: UnresolvedRelation, privileges: Set[TableWritePrivilege]): UnresolvedRelation =
    named.requireWritePrivileges(privileges.toSeq)

  /** Whether a write may give its table new columns. */
  def evolves(write: V2WriteCommand): Boolean = false

  /** The write, which may give its table new columns. */
  def evolving(write: V2WriteCommand): V2WriteCommand = throw new UnsupportedOperationException(
    s"A write changes the columns of its table with Spark 4.2 or newer only, not with ${org.apache.spark.SPARK_VERSION}: " +
      "change them by ALTER TABLE first.")

  /** DESCRIBE TABLE of a table, not of one of its partitions. */
  object Described {
    def unapply(plan: LogicalPlan): Option[(TableCatalog, Identifier, Table, Boolean, Seq[Attribute])] = plan match {
      case DescribeRelation(ResolvedTable(catalog, ident, table, _), partition, isExtended, output)
          if partition.isEmpty => Some((catalog, ident, table, isExtended, output))
      case _ => None
    }
  }

  /** What carries out SHOW TABLES, views included. */
  abstract class Listing(
      output: Seq[Attribute], catalog: RelationCatalog, namespace: Seq[String], pattern: Option[String])
    extends ShowTablesExec(output, catalog, namespace, pattern) {

    override protected def run(): Seq[InternalRow] = {
      val found = catalog.listRelationSummaries(namespace.toArray).map(_.identifier)
      val shown = pattern.fold(found.map(_.name).toSeq)(StringUtils.filterPattern(found.map(_.name).toSeq, _)).toSet
      found.toSeq.filter(ident => shown(ident.name))
        .map(ident => toCatalystRow(ident.namespace.quoted, ident.name, false))
    }
  }

  /** What carries out DESCRIBE TABLE. */
  abstract class Describing(
      output: Seq[Attribute], catalog: TableCatalog, ident: Identifier, table: Table, isExtended: Boolean)
    extends DescribeTableExec(output, table, isExtended)
}
