package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, DescribeRelation, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog, TableWritePrivilege}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.v2.{DescribeTableExec, ShowTablesExec}

/** Statements as Spark's plans have them. */
private[lakelog] object Statements {

  /** The id of the query that this thread runs. */
  def queryId(context: SparkContext): Option[String] = Option(context.getLocalProperty(SQLExecution.QUERY_ID_KEY))

  /** A table that is named to be written. */
  def toWrite(named: UnresolvedRelation, privileges: Set[TableWritePrivilege]): UnresolvedRelation =
    named.requireWritePrivileges(privileges)

  /** Whether a write may give its table new columns. */
  def evolves(write: V2WriteCommand): Boolean = write match {
    case append: AppendData => append.withSchemaEvolution
    case overwrite: OverwriteByExpression => overwrite.withSchemaEvolution
    case overwrite: OverwritePartitionsDynamic => overwrite.withSchemaEvolution
    case _ => false
  }

  /** The write, which may give its table new columns. */
  def evolving(write: V2WriteCommand): V2WriteCommand = write match {
    case append: AppendData => append.copy(withSchemaEvolution = true)
    case overwrite: OverwriteByExpression => overwrite.copy(withSchemaEvolution = true)
    case overwrite: OverwritePartitionsDynamic => overwrite.copy(withSchemaEvolution = true)
    case other => other
  }

  /** DESCRIBE TABLE of a table, not of one of its partitions. */
  object Described {
    def unapply(plan: LogicalPlan): Option[(TableCatalog, Identifier, Table, Boolean, Seq[Attribute])] = plan match {
      case DescribeRelation(ResolvedTable(catalog, ident, table, _), isExtended, output) =>
        Some((catalog, ident, table, isExtended, output))
      case _ => None
    }
  }

  /** What carries out SHOW TABLES, views included. */
  abstract class Listing(
      output: Seq[Attribute], catalog: RelationCatalog, namespace: Seq[String], pattern: Option[String])
    extends ShowTablesExec(output, catalog, namespace, pattern)

  /** What carries out DESCRIBE TABLE. */
  abstract class Describing(
      output: Seq[Attribute], catalog: TableCatalog, ident: Identifier, table: Table, isExtended: Boolean)
    extends DescribeTableExec(output, catalog.name, ident, table, isExtended)
}
