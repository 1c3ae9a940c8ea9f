package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.StagingTableCatalog

/** What Spark asks a catalog that makes tables together with their rows since version 4.1. */
private[lakelog] trait NewerStagingCatalog extends StagingTableCatalog
