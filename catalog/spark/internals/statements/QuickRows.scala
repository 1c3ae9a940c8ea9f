package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.lakelog.internals.seam.Statements
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.catalyst.analysis.{ResolvedNamespace, ResolvedTable}
import org.apache.spark.sql.catalyst.expressions.{Attribute, GenericInternalRow}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ShowTableProperties, ShowTables}
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.{ShowTablePropertiesExec, V2CommandExec}
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * DESCRIBE, SHOW TABLES and SHOW TBLPROPERTIES as Spark carries them out, except for how their rows are made. Spark generates
 * code for that anew in each statement, which takes a quarter of its time, for a few texts.
 */
private[lakelog] object QuickRows extends (SparkSession => SparkStrategy) {

  override def apply(session: SparkSession): SparkStrategy = new SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case Statements.Described(catalog, ident, table: LakeTable, isExtended, output) =>
        Seq(new DescribeQuickly(output, catalog, ident, table, isExtended))
      case ShowTables(ResolvedNamespace(lake: CatalogAccess, namespace, _), pattern, output) =>
        Seq(new ShowTablesQuickly(output, lake, namespace, pattern))
      case ShowTableProperties(resolved @ ResolvedTable(_, _, table: LakeTable, _), key, output) =>
        Seq(new ShowPropertiesQuickly(output, table, resolved.name, key))
      case _ => Nil
    }
  }
}

private[lakelog] trait MakesRowsQuickly extends V2CommandExec {
  override protected def toCatalystRow(values: Any*): InternalRow =
    new GenericInternalRow(values.map(CatalystTypeConverters.convertToCatalyst).toArray[Any])
}

private[lakelog] class DescribeQuickly(
    output: Seq[Attribute], catalog: TableCatalog, ident: Identifier, table: Table, isExtended: Boolean)
  extends Statements.Describing(output, catalog, ident, table, isExtended) with MakesRowsQuickly {

  /** The members of the class that it extends are not the same in all Sparks. */
  override def clone(): SparkPlan = new DescribeQuickly(output, catalog, ident, table, isExtended)
}

private[lakelog] class ShowTablesQuickly(
    output: Seq[Attribute], catalog: CatalogAccess, namespace: Seq[String], pattern: Option[String])
  extends Statements.Listing(output, catalog, namespace, pattern) with MakesRowsQuickly

private[lakelog] class ShowPropertiesQuickly(
    output: Seq[Attribute], table: Table, name: String, key: Option[String])
  extends ShowTablePropertiesExec(output, table, name, key) with MakesRowsQuickly
