package org.apache.spark.sql.lakelog.internals.seam

import java.io.Closeable

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Table, TableChange}
import org.apache.spark.sql.connector.read.Scan

/** The transaction of a statement. This Spark begins none. */
private[lakelog] trait Transaction extends Closeable {
  def catalog(): CatalogPlugin
  def commit(): Unit
  def abort(): Unit
  def registerScans(scans: Array[Scan]): Boolean
  override def close(): Unit
}

trait TransactionInfo

private[lakelog] trait TransactionalCatalogPlugin extends CatalogPlugin {
  def beginTransaction(info: TransactionInfo): Transaction
}

/** A table whose columns a write may change. */
private[lakelog] trait SupportsSchemaEvolution extends Table {
  def supportsColumnChange(change: TableChange.ColumnChange): Boolean
}
