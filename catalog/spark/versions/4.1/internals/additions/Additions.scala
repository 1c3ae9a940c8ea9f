package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.statements.{LakeStatement, OtherWords}

/** What lakelog does itself for a Spark that does not: views, functions and copies of tables in catalogs, and changes of tables. */
private[lakelog] object Additions {

  /** Statements that Spark's grammar does not have, or only for its own catalog. */
  val statements: Seq[LakeStatement] = Seq(TablesLike, RefusedHere)

  /** What Spark's parser is to read in place of a text that it has refused. */
  val inOtherWords: String => Option[OtherWords] = NewerWords.in

  /** Rules that see a plan before Spark resolves any of it. */
  val early: Seq[SparkSession => Rule[LogicalPlan]] =
    Seq(ChangesClauses, ViewStatements, FunctionCalls, LeftOutColumns)

  /** Rules among those by which Spark resolves names, after Spark's own. */
  val resolution: Seq[SparkSession => Rule[LogicalPlan]] =
    Seq(ViewRelations, ChangesFound, FunctionCalls.Resolution, ColumnsAsAnalysed)

  /** Rules that see an optimised plan once. */
  val optimizer: Seq[SparkSession => Rule[LogicalPlan]] = Seq(ColumnsAsAnalysed.Check, MergesThatAdd)
}
