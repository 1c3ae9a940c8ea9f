package org.apache.spark.sql.lakelog.internals.additions

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.statements.{LakeNames, LakeStatement, StatementWords}

/** Statements about lakelog's tables that only newer Sparks have: the error names the version that has them. */
private[lakelog] object RefusedHere extends LakeStatement {

  override def parse(words: StatementWords): Option[LogicalPlan] = {
    if (words.beginWith("insert") && words.take("INSERT", "WITH", "SCHEMA", "EVOLUTION")) {
      if (!words.take("INTO")) words.take("OVERWRITE")
      words.take("TABLE")
      for {
        name <- words.name().flatMap(name => Try(words.partsOf(name)).toOption) if LakeNames.isTableOrPlace(name)
      } throw Failures.unsupported(
        s"INSERT WITH SCHEMA EVOLUTION needs Spark 4.2 or newer, and this is $SPARK_VERSION: add the columns by ALTER " +
          "TABLE … ADD COLUMN first.")
    }
    None
  }
}
