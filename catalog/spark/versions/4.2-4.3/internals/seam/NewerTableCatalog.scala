package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.TableCatalog

/** What Spark asks a catalog of tables for since version 4.2. */
private[lakelog] trait NewerTableCatalog extends TableCatalog
