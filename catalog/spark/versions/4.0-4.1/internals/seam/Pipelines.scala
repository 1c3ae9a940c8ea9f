package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.Identifier

/** What a run of declarative pipelines does in this thread. Spark 4.0 has none, and 4.1 drops a view and creates it again. */
private[lakelog] object Pipelines {

  /** Whether it prepares the tables that the run will write. */
  def isPreparing: Boolean = false

  /** Whether it writes the rows of a materialized view. */
  def isFillingView: Boolean = false

  /** Whether each pipeline that declares the table declares it as a materialized view. */
  def isView(catalog: String, ident: Identifier): Boolean = false
}
