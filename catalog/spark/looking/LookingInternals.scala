package org.apache.spark.sql.lakelog

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.SQLExecution

/** What lists and describes need of Spark's inside. See [[SparkInternals]]. */
private[lakelog] object LookingInternals {

  /** Whether this thread executes a SHOW TABLE EXTENDED, which loads every table that it shows. */
  def isShowingTables: Boolean =
    Option(SparkSession.active.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
      .flatMap(id => Option(SQLExecution.getQueryExecution(id.toLong)))
      .exists(_.logical.isInstanceOf[ShowTablesExtended])

  /** The root of a catalog stays, as Spark's own `default` does. */
  def rootIsNotDropped(catalog: String): Throwable =
    QueryCompilationErrors.cannotDropDefaultDatabaseError(Seq(catalog))
}
