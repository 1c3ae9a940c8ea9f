package org.apache.spark.sql.lakelog.internals

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.{CharStreams, Token}

import org.apache.spark.sql.catalyst.parser.SqlBaseLexer

private[lakelog] object SqlTokens {

  /** What Spark's own lexer, which knows capitals only, makes of a text; comments and spaces are left out. */
  def of[T](text: String)(each: (SqlBaseLexer, Token) => T): IndexedSeq[T] = {
    val points = text.codePoints.map(Character.toUpperCase(_: Int)).toArray
    val lexer = new SqlBaseLexer(CharStreams.fromString(new String(points, 0, points.length)))
    lexer.removeErrorListeners()
    lexer.getAllTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL).map(each(lexer, _)).toIndexedSeq
  }
}
