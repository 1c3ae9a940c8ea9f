package org.apache.spark.sql.lakelog.refs

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.internals.statements.StatementWords
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.statements.{AlterTableStatement, TableStatement}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Tags and branches, in Iceberg's words:
 *
 * {{{
 * ALTER TABLE t CREATE [OR REPLACE] BRANCH | TAG [IF NOT EXISTS] name [AS OF VERSION number | 'name' | AS OF TIMESTAMP time]
 * ALTER TABLE t REPLACE BRANCH | TAG name [AS OF …]
 * ALTER TABLE t DROP BRANCH | TAG [IF EXISTS] name
 * }}}
 */
private[lakelog] object RefStatements extends AlterTableStatement {

  private val Kinds = Seq("BRANCH" -> CatalogNames.Branch, "TAG" -> CatalogNames.Tag)

  override protected val begins: Seq[Seq[String]] =
    Seq(Seq("CREATE"), Seq("CREATE", "OR", "REPLACE"), Seq("REPLACE"), Seq("DROP"))
      .flatMap(words => Kinds.map { case (kind, _) => words :+ kind })

  override protected def parsed(words: StatementWords): TableStatement =
    if (words.take("DROP")) {
      val kind = kindOf(words)
      val ifExists = words.take("IF", "EXISTS")
      val name = nameOf(words, kind)
      words.expectEnd()
      ChangeRef(wire.DropRef(_, kind = kind, name = name, ifExists = ifExists))
    } else {
      val creates = words.take("CREATE")
      val replaces = creates && words.take("OR", "REPLACE")
      if (!creates) words.expect("REPLACE")
      val kind = kindOf(words)
      val where =
        if (!creates) "there"
        else if (replaces) "any"
        else if (words.take("IF", "NOT", "EXISTS")) "new-or-there"
        else "new"
      val name = nameOf(words, kind)
      val from = asOf(words)
      ChangeRef(wire.CreateRef(_, kind = kind, name = name, where = where, asOf = from))
    }

  private def kindOf(words: StatementWords): String =
    Kinds.collectFirst { case (word, kind) if words.take(word) => kind }.getOrElse(words.fail())

  private def nameOf(words: StatementWords, kind: String): String =
    words.simpleName(s"a $kind")

  /** What is to be tagged or to branch off. */
  private def asOf(words: StatementWords): wire.AsOf = {
    val found =
      if (words.take("AS", "OF", "VERSION")) version(words, literal(words))
      else if (words.take("AS", "OF", "TIMESTAMP")) time(words, literal(words))
      else wire.AsOf()
    if (words.are("RETAIN") || words.are("WITH", "SNAPSHOT")) {
      words.fail(": tags and branches are kept until they are dropped, with all that they need, so leave this out")
    }
    words.expectEnd()
    found
  }

  private def literal(words: StatementWords): Option[Literal] =
    Some(words.expression(words.until("RETAIN", "WITH"))).collect[Literal] { case literal: Literal => literal }

  private def version(words: StatementWords, literal: Option[Literal]): wire.AsOf = literal.map(_.value) match {
    case Some(number: Int) => wire.AsOf(version = Some(number.toLong))
    case Some(number: Long) => wire.AsOf(version = Some(number))
    case Some(text: UTF8String) => RefTables.version(text.toString)
        .fold(number => wire.AsOf(version = Some(number)), name => wire.AsOf(ref = Some(name)))
    case _ => words.fail(": a version is a number, or the name of a tag or branch as a text")
  }

  private def time(words: StatementWords, literal: Option[Literal]): wire.AsOf = literal.flatMap {
    case Literal(us: Long, TimestampType) => Some(us)
    case Literal(text: UTF8String, _) => SettingInternals.timestamp(text.toString)
    case _: Expression => None
  }.map(us => wire.AsOf(timestampUs = Some(us))).getOrElse(
    words.fail(": a time is written as '2026-11-21 21:00:00'"))
}

/** Makes or drops a tag or branch. */
private[lakelog] final case class ChangeRef(
    change: wire.LoadedTable => wire.Change[wire.EmptyAnswer]) extends TableStatement {
  override def run(table: LakeTable): Unit = table.access.change(change(table.facts.reference))
}
