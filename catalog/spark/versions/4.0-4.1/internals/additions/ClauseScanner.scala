package org.apache.spark.sql.lakelog.internals.additions

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.antlr.v4.runtime.{BailErrorStrategy, CharStreams, CommonTokenStream, ParserRuleContext, Token}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.parser.{SqlBaseLexer, SqlBaseParser}
import org.apache.spark.sql.lakelog.internals.Failures

/** A version or time as it is written, and whether its own changes count. */
private[lakelog] final case class ChangesBound(value: String, isIncluded: Boolean)

/**
 * A clause `CHANGES FROM …` of a text, from its first character to behind its last one. If it has options, it ends behind the
 * parenthesis that opens them.
 */
private[lakelog] final case class ChangesClause(
    text: String, start: Int, end: Int, areTimes: Boolean, first: ChangesBound, last: Option[ChangesBound],
    hasOptions: Boolean)

/** Finds the clauses of a text. What is in them, a version or the expression of a time, Spark's own parser says. */
private[lakelog] object ClauseScanner {

  def apply(text: String): Seq[ChangesClause] = {
    val scanner = new ClauseScanner(text)
    val found = mutable.Buffer.empty[ChangesClause]
    var at = 0
    while (at < scanner.length) {
      scanner.clause(at) match {
        case Some((clause, next)) =>
          found += clause
          at = next
        case None => at += 1
      }
    }
    found.toSeq
  }
}

private final class ClauseScanner(text: String) {
  import SqlBaseParser._

  // Spark's lexer knows capitals only.
  private val stream = new CommonTokenStream(new SqlBaseLexer(
      CharStreams.fromString(new String(text.codePoints.map(Character.toUpperCase(_: Int)).toArray, 0, points))))
  stream.fill()
  private val tokens: IndexedSeq[Token] =
    stream.getTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL).toIndexedSeq

  private def points: Int = text.codePointCount(0, text.length)

  def length: Int = tokens.length

  /** The clause that begins at a token, and the token behind it. */
  def clause(at: Int): Option[(ChangesClause, Int)] =
    if (at == 0 || !is(at, "CHANGES") || kind(at + 1) != FROM) None
    else {
      val areTimes = Set(TIMESTAMP, SYSTEM_TIME)(kind(at + 2))
      if (!areTimes && !Set(VERSION, SYSTEM_VERSION)(kind(at + 2))) None
      else bound(at + 3, areTimes).map { case (first, behind) =>
        val (last, end) = Some(behind).filter(kind(_) == TO)
          .filter(to => kind(to + 1) == kind(at + 2)).flatMap(to => bound(to + 2, areTimes))
          .fold((Option.empty[ChangesBound], behind)) { case (last, next) => (Some(last), next) }
        val hasOptions = kind(end) == WITH && kind(end + 1) == LEFT_PAREN
        val next = if (hasOptions) end + 2 else end
        val (from, to) = (start(tokens(at)), stop(tokens(next - 1)))
        ChangesClause(text.substring(from, to), from, to, areTimes, first, last, hasOptions) -> next
      }
    }

  private def bound(at: Int, isTime: Boolean): Option[(ChangesBound, Int)] = {
    if (kind(at) == COLON || kind(at) == QUESTION) throw Failures.unsupported(
      s"A parameter in CHANGES FROM needs Spark 4.2 or newer, and this is $SPARK_VERSION: write the value into the text.")
    parsed(at, parser => if (isTime) parser.valueExpression() else parser.version()).map { last =>
      val value = text.substring(start(tokens(at)), stop(tokens(last)))
      val next = last + 1
      if (is(next, "EXCLUSIVE")) ChangesBound(value, isIncluded = false) -> (next + 1)
      else if (is(next, "INCLUSIVE")) ChangesBound(value, isIncluded = true) -> (next + 1)
      else ChangesBound(value, isIncluded = true) -> next
    }
  }

  /** The last token of what a rule of Spark's grammar takes from a token on. */
  private def parsed(at: Int, rule: SqlBaseParser => ParserRuleContext): Option[Int] = Try {
    stream.seek(tokens(at).getTokenIndex)
    val parser = new SqlBaseParser(stream)
    parser.removeErrorListeners()
    parser.setErrorHandler(new BailErrorStrategy)
    val last = rule(parser).getStop.getTokenIndex
    tokens.indexWhere(_.getTokenIndex == last)
  }.toOption

  private def kind(at: Int): Int = tokens.lift(at).fold(Token.EOF)(_.getType)

  private def is(at: Int, word: String): Boolean = tokens.lift(at).exists(_.getText == word)

  private def start(token: Token): Int = text.offsetByCodePoints(0, token.getStartIndex)

  private def stop(token: Token): Int = text.offsetByCodePoints(0, token.getStopIndex + 1)
}
