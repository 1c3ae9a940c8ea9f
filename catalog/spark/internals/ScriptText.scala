package org.apache.spark.sql.lakelog.internals

import java.util.Locale

/**
 * Finds single statements in the text of a SQL script. Pure.
 *
 * `tokens` are those of the whole text, in order. Places are counted in code points, as Spark's parser does.
 */
private[lakelog] final class ScriptText(text: String, tokens: IndexedSeq[ScriptText.Token]) {

  /** The statement that begins at `start`: all up to the next semicolon that stands in no literal or comment. */
  def statementFrom(start: Int): String = {
    val end = tokens.find(token => token.start >= start && token.kind == "SEMICOLON").map(index).getOrElse(text.length)
    text.substring(text.offsetByCodePoints(0, start), end).trim
  }

  /** The CREATE or REPLACE TABLE … AS whose query begins at `start`; None if there is another statement. */
  def creationAround(start: Int): Option[String] = {
    val before = tokens.takeWhile(_.start < start)
    val ofStatement = before.drop(before.lastIndexWhere(_.kind == "SEMICOLON") + 1)
    val begin = ofStatement.indices.findLast { i =>
      ScriptText.Creates(ofStatement(i).kind) && (i == 0 || ScriptText.Opens(ofStatement(i - 1).kind))
    }
    begin.map(i => statementFrom(ofStatement(i).start))
  }

  private def index(token: ScriptText.Token): Int = text.offsetByCodePoints(0, token.start)
}

private[lakelog] object ScriptText {

  final case class Token(kind: String, start: Int)

  /** Whether the first word of a text is one of these, in small letters; comments, which may nest, are passed over. */
  def beginsWith(text: String, words: Set[String]): Boolean = {
    var at = 0
    var depth = 0
    var isBefore = true
    while (isBefore && at < text.length) {
      if (text.startsWith("/*", at)) { depth += 1; at += 2 }
      else if (depth > 0 && text.startsWith("*/", at)) { depth -= 1; at += 2 }
      else if (depth > 0 || text(at).isWhitespace) at += 1
      else if (text.startsWith("--", at)) at = Some(text.indexOf('\n', at)).filter(_ >= 0).getOrElse(text.length)
      else isBefore = false
    }
    words(text.drop(at).takeWhile(c => c.isLetterOrDigit || c == '_').toLowerCase(Locale.ROOT))
  }

  private val Creates = Set("CREATE", "REPLACE")

  /** A statement can stand right behind these. */
  private val Opens = Set("BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT")
}
