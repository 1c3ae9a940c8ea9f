package org.apache.spark.sql.lakelog

import scala.collection.mutable.ArrayBuffer

import org.json4s.JsonAST.{JArray, JLong, JNull, JObject, JString, JValue}

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}

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
    def changes(): (Seq[JObject], Boolean) =
      if (words.take("ADD", "PARTITION", "FIELD")) Seq(added()) -> false
      else if (words.take("DROP", "PARTITION", "FIELD")) Seq(dropped()) -> false
      else if (words.take("REPLACE", "PARTITION", "FIELD")) Seq(replaced()) -> false
      else {
        words.expect("WRITE")
        written()
      }

    private def added(): JObject =
      change("add-partition-field", "field" -> transform(words.until("AS")), "name" -> alias())

    private def dropped(): JObject = {
      val field = transform(words.until())
      change("drop-partition-field", "field" -> field)
    }

    private def replaced(): JObject = {
      val field = transform(words.until("WITH"))
      words.expect("WITH")
      change("replace-partition-field", "field" -> field, "by" -> transform(words.until("AS")), "name" -> alias())
    }

    private def alias(): JValue =
      if (words.take("AS")) {
        val name = words.simpleName("a partition field")
        words.expectEnd()
        JString(name)
      } else {
        words.expectEnd()
        JNull
      }

    private def written(): (Seq[JObject], Boolean) = {
      var isDistributed = false
      var order: Option[Seq[JObject]] = None
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
      Seq(change("set-sort-order", "fields" -> JArray(order.getOrElse(Nil).toList))) -> isDistributed
    }

    private def orderFields(): Seq[JObject] = {
      val inParentheses = words.take("(")
      val closing = if (inParentheses) Seq(")") else Nil
      val ends = Seq("ASC", "DESC", "NULLS", ",", "DISTRIBUTED", "LOCALLY", "ORDERED", "UNORDERED") ++ closing
      val fields = ArrayBuffer.empty[JObject]
      do {
        val of = transform(words.until(ends: _*)) match {
          case column: JString => Json.obj("column" -> JArray(List(column)))
          case other: JObject => other
          case other => throw new IllegalStateException(s"$other is not a transform")
        }
        val direction = if (words.take("DESC")) "desc" else { words.take("ASC"); "asc" }
        val nulls =
          if (words.take("NULLS", "FIRST")) JString("first")
          else if (words.take("NULLS", "LAST")) JString("last")
          else JNull
        fields += Json.merge(of, "direction" -> JString(direction), "nulls" -> nulls)
      } while (words.take(","))
      if (inParentheses) words.expect(")")
      fields.toSeq
    }

    /** A column or a transform of one, as Python takes it. */
    private def transform(text: String): JValue = words.expression(text) match {
      case column: UnresolvedAttribute if column.nameParts.length == 1 => JString(column.nameParts.head)
      case column: UnresolvedAttribute => Json.obj("column" -> Json.texts(column.nameParts))
      case function: UnresolvedFunction if function.nameParts.length == 1 =>
        val columns = function.arguments.collect { case column: UnresolvedAttribute => Json.texts(column.nameParts) }
        val numbers = function.arguments.collect { case literal: Literal => number(literal, text) }
        if (columns.length + numbers.length < function.arguments.length) notTransform(text)
        Json.obj(
          "transform" -> JString(function.nameParts.head.toLowerCase(java.util.Locale.ROOT)),
          "args" -> JArray(numbers.toList), "columns" -> JArray(columns.toList))
      case _: Expression => notTransform(text)
    }

    private def number(literal: Literal, text: String): JValue = literal.value match {
      case value: Int => JLong(value.toLong)
      case value: Long => JLong(value)
      case _ => notTransform(text)
    }

    private def notTransform(text: String): Nothing = words.fail(
      s": $text is neither a column nor a transform of one, such as bucket(16, id), truncate(4, name) or days(at)")

    private def change(kind: String, members: (String, JValue)*): JObject =
      JObject(("change" -> JString(kind)) :: members.toList)
  }
}
