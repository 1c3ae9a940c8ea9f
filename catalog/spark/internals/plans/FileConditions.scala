package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.sql.catalyst.expressions.{PredicateHelper, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.wire

/** Conditions in SQL that choose files of a table. */
private[lakelog] object FileConditions extends PredicateHelper {

  /** A condition on the rows of a table, as Spark makes it simple for a scan. */
  def of(name: String, text: String): wire.Expression = {
    def refused(what: String) = Failures.invalid(
      s"The condition '$text' cannot choose files of $name, as $what: compare columns with values.")
    val rows = SparkSession.active.table(name).where(text).queryExecution
    rows.analyzed.foreach(_.expressions.foreach { expression =>
      if (SubqueryExpression.hasSubquery(expression)) throw refused("it has a subquery")
      if (!expression.deterministic) throw refused("it is not deterministic")
    })
    rows.optimizedPlan match {
      case _: LocalRelation => Predicates.toPython(Seq(new AlwaysFalse))
      case plan =>
        val parts = plan.collect { case filter: Filter => splitConjunctivePredicates(filter.condition) }.flatten
        Predicates.toPython(parts.map(part =>
            DataSourceV2Strategy.translateFilterV2(part).getOrElse(
              throw refused(s"${part.sql} cannot be decided from the log"))))
    }
  }
}
