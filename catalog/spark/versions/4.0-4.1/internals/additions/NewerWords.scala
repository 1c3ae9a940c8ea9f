package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{AlterViewAs, CreateUserDefinedFunction, CreateView, LogicalPlan}
import org.apache.spark.sql.lakelog.internals.statements.OtherWords

/** A part of a text, and what Spark's parser is to read in its place. */
private[lakelog] final case class Replacement(start: Int, end: Int, words: String)

/** What the grammars of newer Sparks have, in words of this one. */
private[lakelog] object NewerWords {

  /** The text in words of this Spark; None if it has nothing that only newer ones have. */
  def in(text: String): Option[OtherWords] = {
    val replacements = (ChangesClauses.replacements(text) ++ CatalogCalls.replacements(text)).sortBy(_.start)
    if (replacements.isEmpty) None else Some(new Replaced(text, replacements))
  }

  private final class Replaced(override val written: String, replacements: Seq[Replacement]) extends OtherWords {

    override val text: String = replacements.foldRight(written) { case (Replacement(start, end, words), rest) =>
      rest.substring(0, start) + words + rest.substring(end)
    }

    override protected def original(place: Int): Int = replacements.foldLeft(place) {
      case (at, Replacement(start, end, words)) =>
        if (at < start) at else math.max(start, at - words.length + (end - start))
    }

    override def restored(expression: Expression): Expression = CatalogCalls.restored(expression)

    override def restored(plan: LogicalPlan): LogicalPlan = CatalogCalls.restored(plan).transformDown {
      case view: CreateView => view.copy(originalText = view.originalText.map(restore))
      case view: AlterViewAs => view.copy(originalText = restore(view.originalText))
      case function: CreateUserDefinedFunction =>
        function.copy(exprText = function.exprText.map(restore), queryText = function.queryText.map(restore))
    }

    private def restore(text: String): String = CatalogCalls.restored(ChangesClauses.restored(text))
  }
}
