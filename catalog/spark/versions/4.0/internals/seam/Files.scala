package org.apache.spark.sql.lakelog.internals.seam

import org.apache.parquet.hadoop.ParquetWriter

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** What Spark's Parquet can do. */
private[lakelog] object Files {

  /** Closes row groups at a number of rows: here Parquet has no such limit. */
  def limitRows[B <: ParquetWriter.Builder[_, B]](builder: B, rows: Int): Unit = ()
}

/** What Spark has cached of tables. */
private[lakelog] object Caches {

  /** Whether it is of a version that a query has named. */
  def isOfPast(relation: DataSourceV2Relation): Boolean = false

  /** Reads anew what is cached of the newest version of that table. */
  def refresh(session: SparkSession, relation: DataSourceV2Relation, name: Seq[String]): Unit =
    session.sharedState.cacheManager.recacheByPlan(session, relation)
}
