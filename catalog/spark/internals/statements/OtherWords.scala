package org.apache.spark.sql.lakelog.internals.statements

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.lakelog.internals.seam.Errors

/** A text that Spark's parser has refused, in words that it knows. */
private[lakelog] trait OtherWords {

  /** As it was written. */
  def written: String

  /** For Spark's parser. */
  def text: String

  /** The place in the written text for a place in this one. */
  protected def original(place: Int): Int

  /** The plan of this text, with the texts that it keeps as they were written. */
  def restored(plan: LogicalPlan): LogicalPlan

  def restored(expression: Expression): Expression

  /** The same error about the written text. */
  final def about(error: ParseException): ParseException = {
    val place = for { line <- error.line; column <- error.startPosition } yield {
      val before = written.substring(0, original(offset(line, column)).min(written.length))
      (before.count(_ == '\n') + 1, before.length - (before.lastIndexOf('\n') + 1))
    }
    val origin = Origin(place.map(_._1), place.map(_._2), Some(0), Some(written.length - 1), Some(written))
    val same = Errors.parse(Some(written), origin, error.getCondition, error.getMessageParameters.asScala.toMap)
    same.addSuppressed(error)
    same
  }

  private def offset(line: Int, column: Int): Int =
    text.linesWithSeparators.take(line - 1).map(_.length).sum + column
}
