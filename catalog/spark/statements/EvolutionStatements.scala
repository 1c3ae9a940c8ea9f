package org.apache.spark.sql.lakelog.statements

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.lakelog.internals.statements.StatementWords
import org.apache.spark.sql.lakelog.wire

/**
 * How a table's new files are partitioned and ordered:
 *
 * {{{
 * ALTER TABLE t ADD PARTITION FIELD transform [AS name]
 * ALTER TABLE t DROP PARTITION FIELD name | transform
 * ALTER TABLE t REPLACE PARTITION FIELD name | transform WITH transform [AS name]
 * ALTER TABLE t WRITE [DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY transform [ASC | DESC] [NULLS FIRST | LAST], …]
 * ALTER TABLE t WRITE [DISTRIBUTED BY PARTITION] UNORDERED
 * }}}
 */
private[lakelog] object EvolutionStatements extends AlterTableStatement {

  override protected val begins: Seq[Seq[String]] = Seq(
    Seq("ADD", "PARTITION", "FIELD"), Seq("DROP", "PARTITION", "FIELD"), Seq("REPLACE", "PARTITION", "FIELD"),
    Seq("WRITE"))

  override protected def parsed(words: StatementWords): TableStatement = {
    val (changes, isDistributed) = new Parsing(words).changes()
    EvolveTable(changes, isDistributed)
  }

  /** What stands behind the table's name. */
  private final class Parsing(words: StatementWords) {

    /** The changes, and whether the statement asks for files of one partition each. */
    def changes(): (Seq[wire.TableChange], Boolean) =
      if (words.take("ADD", "PARTITION", "FIELD")) Seq(added()) -> false
      else if (words.take("DROP", "PARTITION", "FIELD")) Seq(dropped()) -> false
      else if (words.take("REPLACE", "PARTITION", "FIELD")) Seq(replaced()) -> false
      else {
        words.expect("WRITE")
        written()
      }

    private def added(): wire.TableChange = wire.AddPartitionField(transform(words.until("AS")), alias())

    private def dropped(): wire.TableChange = wire.DropPartitionField(transform(words.until()))

    private def replaced(): wire.TableChange = {
      val field = transform(words.until("WITH"))
      words.expect("WITH")
      wire.ReplacePartitionField(field, transform(words.until("AS")), alias())
    }

    private def alias(): Option[String] = {
      val name = if (words.take("AS")) Some(words.simpleName("a partition field")) else None
      words.expectEnd()
      name
    }

    private def written(): (Seq[wire.TableChange], Boolean) = {
      var isDistributed = false
      var order: Option[Seq[wire.StatedField]] = None
      do {
        if (!isDistributed && words.take("DISTRIBUTED")) {
          words.expect("BY", "PARTITION")
          isDistributed = true
        } else if (order.isEmpty && words.take("UNORDERED")) order = Some(Nil)
        else if (order.isEmpty && (words.are("LOCALLY") || words.are("ORDERED"))) {
          words.take("LOCALLY")
          words.expect("ORDERED", "BY")
          order = Some(orderFields())
        } else words.fail()
      } while (!words.isAtEnd)
      Seq(wire.SetSortOrder(order.getOrElse(Nil).map(Right(_)))) -> isDistributed
    }

    private def orderFields(): Seq[wire.StatedField] = {
      val inParentheses = words.take("(")
      val closing = if (inParentheses) Seq(")") else Nil
      val ends = Seq("ASC", "DESC", "NULLS", ",", "DISTRIBUTED", "LOCALLY", "ORDERED", "UNORDERED") ++ closing
      val fields = ArrayBuffer.empty[wire.StatedField]
      do {
        val of = transform(words.until(ends: _*)).fold(
          column => wire.StatedField(column = Some(Right(Seq(column)))), identity)
        val direction = if (words.take("DESC")) "desc" else { words.take("ASC"); "asc" }
        val nulls =
          if (words.take("NULLS", "FIRST")) Some("first")
          else if (words.take("NULLS", "LAST")) Some("last")
          else None
        fields += of.copy(direction = Some(direction), nulls = nulls)
      } while (words.take(","))
      if (inParentheses) words.expect(")")
      fields.toSeq
    }

    /** A column or a transform of one, as Python takes it. */
    private def transform(text: String): Either[String, wire.StatedField] = words.expression(text) match {
      case column: UnresolvedAttribute if column.nameParts.length == 1 => Left(column.nameParts.head)
      case column: UnresolvedAttribute => Right(wire.StatedField(column = Some(Right(column.nameParts))))
      case function: UnresolvedFunction if function.nameParts.length == 1 =>
        val columns = function.arguments.collect { case column: UnresolvedAttribute => Right(column.nameParts) }
        val numbers = function.arguments.collect { case literal: Literal => number(literal, text) }
        if (columns.length + numbers.length < function.arguments.length) notTransform(text)
        Right(wire.StatedField(
            function.nameParts.head.toLowerCase(java.util.Locale.ROOT), numbers, columns = Some(columns)))
      case _: Expression => notTransform(text)
    }

    private def number(literal: Literal, text: String): Long = literal.value match {
      case value: Int => value.toLong
      case value: Long => value
      case _ => notTransform(text)
    }

    private def notTransform(text: String): Nothing = words.fail(
      s": $text is neither a column nor a transform of one, such as bucket(16, id), truncate(4, name) or days(at)")
  }
}
