package org.apache.spark.sql.lakelog.internals.statements

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.parser.ParserInterface

/**
 * A session's parser that sees every text first, whatever extension `spark.sql.extensions` names last.
 *
 * Spark puts the parser of each extension over those named before it, and Delta's takes VACUUM or OPTIMIZE whatever table
 * it is about. So the parsers of extensions named behind lakelog's are put below lakelog's too. If Spark keeps them
 * otherwise than is known here, they stay where they are: name lakelog's extension last then.
 */
private[lakelog] object OutermostParser {
  private type Builder = (SparkSession, ParserInterface) => ParserInterface

  /** In place of a parser that is below already: Spark reads its list while it goes along it. */
  private val moved: Builder = (_, parser) => parser

  def inject(extensions: SparkSessionExtensions, own: ParserInterface => ParserInterface): Unit = {
    lazy val builder: Builder = (session, below) =>
      own(behind.foldLeft(below)((parser, each) => each(session, parser)))
    lazy val behind: Seq[Builder] = taken(extensions, builder)
    extensions.injectParser(builder)
  }

  /** Takes out of the list what stands in it behind `builder`. */
  private def taken(extensions: SparkSessionExtensions, builder: Builder): Seq[Builder] = {
    val builders = listOf(extensions).getOrElse(mutable.Buffer.empty)
    val later = builders.indices.drop(builders.indexWhere(_ eq builder) match {
      case -1 => builders.length
      case own => own + 1
    })
    val behind = later.map(builders)
    later.foreach(builders(_) = moved)
    behind.filterNot(_ eq moved)
  }

  private def listOf(extensions: SparkSessionExtensions): Option[mutable.Buffer[Builder]] = Try {
    val list = classOf[SparkSessionExtensions].getDeclaredField("parserBuilders")
    list.setAccessible(true)
    list.get(extensions).asInstanceOf[mutable.Buffer[Builder]]
  }.toOption
}
