package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** What lakelog does itself for a Spark that does not: views of catalogs, and changes of tables. */
private[lakelog] object Additions {

  /** Rules that see a plan before Spark resolves any of it. */
  val early: Seq[SparkSession => Rule[LogicalPlan]] = Seq(ViewStatements)

  /** Rules among those by which Spark resolves names, after Spark's own. */
  val resolution: Seq[SparkSession => Rule[LogicalPlan]] = Seq(ViewRelations, ChangesFound)
}
