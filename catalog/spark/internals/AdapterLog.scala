package org.apache.spark.sql.lakelog.internals

import org.apache.spark.internal.Logging

/** Spark's log, as the adapter writes to it. */
private[lakelog] object AdapterLog extends Logging {

  def warn(text: => String): Unit = logWarning(text)
}
