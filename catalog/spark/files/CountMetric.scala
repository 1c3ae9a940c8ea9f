package org.apache.spark.sql.lakelog.files

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/**
 * A number that the driver knows, or the tasks together, in Spark's UI. Spark makes each anew by its class's constructor
 * without arguments.
 */
private[lakelog] abstract class CountMetric(override val name: String, override val description: String)
  extends CustomSumMetric

private[lakelog] object CountMetric {

  /** What a task or the driver has counted so far. */
  def value(of: CustomMetric, count: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name: String = of.name
    override def value: Long = count
  }
}
