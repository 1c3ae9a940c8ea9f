package org.apache.spark.sql.lakelog

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** Spark's settings of joins that move no rows. See [[SparkInternals]]. */
private[lakelog] object KeyedInternals {

  private val Enabled = SQLConf.V2_BUCKETING_ENABLED

  def isEnabled: Boolean = SparkInternals.conf.getConf(Enabled)

  /** Whether somebody has said so, rather than that it is Spark's default. */
  def isAskedFor: Boolean = isEnabled && SparkInternals.conf.contains(Enabled.key)

  /** How many tasks Spark runs at once, by its own account. */
  def parallelism: Int = SparkSession.active.leafNodeDefaultParallelism
}
