package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.analysis.UnresolvedTable
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Statements `ALTER TABLE t …` that Spark's grammar does not have. */
private[lakelog] trait AlterTableStatement extends LakeStatement {

  /** How what stands behind the name begins. Of another catalog's table, another extension may have the same words. */
  protected def begins: Seq[Seq[String]]

  /** Parses what stands behind the name. */
  protected def parsed(words: StatementWords, spark: ParserInterface): TableStatement

  final override def parse(text: String, spark: ParserInterface): Option[LogicalPlan] =
    if (!ScriptText.beginsWith(text, Set("alter"))) None
    else {
      val words = new StatementWords(text)
      if (!words.take("ALTER", "TABLE")) None
      else words.name().filter(_ => begins.exists(words.are(_: _*))).map(spark.parseMultipartIdentifier)
        .filter(LakeNames.isTable)
        .map(name => StatementOnTable(UnresolvedTable(name, "ALTER TABLE", false), parsed(words, spark)))
    }
}
