package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A statement that Spark's grammar does not have. */
private[lakelog] trait LakeStatement {

  /**
   * The statement's plan, with names unresolved; None for any other text, which has to be found out quickly: Spark's parser
   * takes it then. A text that can be nothing else and is wrong throws a ParseException. No other checked exception may be
   * thrown.
   */
  def parse(words: StatementWords): Option[LogicalPlan]
}
