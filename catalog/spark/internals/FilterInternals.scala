package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.connector.PredicateUtils
import org.apache.spark.sql.sources.Filter

/** Filters of Spark's older kind. */
private[lakelog] object FilterInternals {

  /**
   * Of a predicate that is neither AND, OR nor NOT: of an OR, Spark drops a side that it has no filter for. Its dates and times
   * are those of the newer classes, as the older ones have no days between the Julian and the Gregorian calendar.
   */
  def v1Filter(predicate: Predicate): Option[Filter] = {
    val settings = SettingInternals.conf.clone()
    settings.setConf(SQLConf.DATETIME_JAVA8API_ENABLED, true)
    SQLConf.withExistingConf(settings)(PredicateUtils.toV1(predicate))
  }
}
