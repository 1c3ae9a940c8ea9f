package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.statements.{LakeStatement, OtherWords}

/** What lakelog does itself for a Spark that does not: nothing is missing here. */
private[lakelog] object Additions {
  val statements: Seq[LakeStatement] = Nil
  val inOtherWords: String => Option[OtherWords] = _ => None
  val early: Seq[SparkSession => Rule[LogicalPlan]] = Nil
  val resolution: Seq[SparkSession => Rule[LogicalPlan]] = Nil
  val optimizer: Seq[SparkSession => Rule[LogicalPlan]] = Nil
}
