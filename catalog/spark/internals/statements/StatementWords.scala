package org.apache.spark.sql.lakelog.internals.statements

import java.util.Locale

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.lakelog.internals.{ScriptText, SqlTokens}
import org.apache.spark.sql.lakelog.internals.seam.Errors

/**
 * The text of a statement as words, of which a parser takes one after the other: what Spark's own lexer makes of it, without
 * comments, spaces and the semicolon at the end. What is in them, a name or an expression, Spark's parser says.
 */
private[lakelog] final class StatementWords(text: String, spark: ParserInterface) {
  import StatementWords.Word

  /** Whether the first of them is this one, in small letters; costs less than to take it. */
  def beginWith(word: String): Boolean = ScriptText.beginsWith(text, Set(word))

  private lazy val words: IndexedSeq[Word] = {
    val all = SqlTokens.of(text)((_, token) => {
      val start = text.offsetByCodePoints(0, token.getStartIndex)
      Word(start, text.offsetByCodePoints(start, token.getStopIndex - token.getStartIndex + 1))
    })
    if (all.lastOption.exists(written(_) == ";")) all.init else all
  }

  private var at = 0

  def isAtEnd: Boolean = at == words.length

  /** Whether the next words are these, in capitals. */
  def are(wanted: String*): Boolean =
    wanted.indices.forall(i => at + i < words.length && written(words(at + i)).toUpperCase(Locale.ROOT) == wanted(i))

  /** Takes the next words if they are these. */
  def take(wanted: String*): Boolean = are(wanted: _*) && { at += wanted.length; true }

  /** Takes the next words, which have to be these. */
  def expect(wanted: String*): Unit = wanted.foreach(word => if (!take(word)) fail())

  /** Takes a name, whose parts have dots between them, and returns it as it is written; None if there is none. */
  def name(): Option[String] = {
    val start = at
    if (isAtEnd) None
    else {
      at += 1
      while (are(".") && at + 1 < words.length) at += 2
      Some(text.substring(words(start).start, words(at - 1).end))
    }
  }

  /** Takes the next word, whatever it is, and returns it as it is written. */
  def next(): String = {
    if (isAtEnd) fail()
    at += 1
    written(words(at - 1))
  }

  /** Reports that the word which was taken last cannot stand where it does. */
  def failBefore(hint: String): Nothing = {
    at -= 1
    fail(hint)
  }

  /** Takes a name of one part, that of `whose`. */
  def simpleName(whose: String): String = {
    val name = this.name().getOrElse(fail())
    partsOf(name) match {
      case Seq(single) => single
      case _ => fail(s": the name $name has several parts, and that of $whose has one")
    }
  }

  /**
   * Takes all up to one of `ends` that stands in no parentheses, or up to the end, and returns it as it is written. There has to
   * be something.
   */
  def until(ends: String*): String = {
    val start = at
    var depth = 0
    while (!isAtEnd && (depth > 0 || !ends.exists(are(_)))) {
      if (are("(")) depth += 1
      if (are(")")) depth -= 1
      at += 1
    }
    if (at == start) fail()
    text.substring(words(start).start, words(at - 1).end)
  }

  /** The parts of a name as it is written. */
  def partsOf(name: String): Seq[String] = spark.parseMultipartIdentifier(name)

  /** An expression as it is written. */
  def expression(written: String): Expression = spark.parseExpression(written)

  def expectEnd(): Unit = if (!isAtEnd) fail()

  /** Reports, as Spark's parser does, that the next word cannot stand where it does, and what could. */
  def fail(hint: String = ""): Nothing = {
    val word = words.lift(at)
    val place = word.map(_.start).getOrElse(text.length)
    val before = text.substring(0, place)
    val origin = Origin(
      line = Some(before.count(_ == '\n') + 1), startPosition = Some(place - (before.lastIndexOf('\n') + 1)),
      startIndex = Some(0), stopIndex = Some(text.length - 1), sqlText = Some(text))
    throw Errors.parse(
      Some(text), origin, "PARSE_SYNTAX_ERROR",
      Map("error" -> word.map(each => s"'${written(each)}'").getOrElse("end of input"), "hint" -> hint))
  }

  private def written(word: Word): String = text.substring(word.start, word.end)
}

private[lakelog] object StatementWords {

  /** From the first character to behind the last one. */
  private final case class Word(start: Int, end: Int)
}
