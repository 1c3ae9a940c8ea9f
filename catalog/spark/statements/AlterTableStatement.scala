package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.catalyst.analysis.UnresolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.lakelog.internals.statements.{LakeNames, LakeStatement, StatementWords}

/** Statements `ALTER TABLE t …` that Spark's grammar does not have. */
private[lakelog] trait AlterTableStatement extends LakeStatement {

  /** How what stands behind the name begins. Of another catalog's table, another extension may have the same words. */
  protected def begins: Seq[Seq[String]]

  /** Parses what stands behind the name. */
  protected def parsed(words: StatementWords): TableStatement

  final override def parse(words: StatementWords): Option[LogicalPlan] =
    if (!words.beginWith("alter") || !words.take("ALTER", "TABLE")) None
    else words.name().filter(_ => begins.exists(words.are(_: _*))).map(words.partsOf).filter(LakeNames.isTable)
      .map(name => StatementOnTable(UnresolvedTable(name, "ALTER TABLE", false), parsed(words)))
}
