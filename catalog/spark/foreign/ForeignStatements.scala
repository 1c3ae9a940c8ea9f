package org.apache.spark.sql.lakelog.foreign

import scala.util.Try

import org.apache.spark.sql.catalyst.analysis.UnresolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.lakelog.internals.statements.{LakeNames, LakeStatement, StatementWords}
import org.apache.spark.sql.lakelog.names.CatalogNames

/**
 * Statements that Delta has for its tables, in its words, for lakelog's tables:
 *
 * {{{
 * DESCRIBE | DESC HISTORY t [LIMIT number]
 * DESCRIBE | DESC DETAIL t
 * OPTIMIZE t [FULL] [WHERE condition] [ZORDER BY (column, …)]
 * VACUUM t [RETAIN number HOURS] [DRY RUN]
 * RESTORE [TABLE] t [TO] VERSION AS OF number | TIMESTAMP AS OF time
 * SHOW BRANCHES | TAGS IN | FROM t
 * }}}
 *
 * Each becomes a statement of lakelog's once its table is known. One about a table of another catalog is left to the parsers of other
 * extensions.
 */
private[lakelog] object ForeignStatements extends LakeStatement {

  private val verbs: Seq[(String, StatementWords => Option[LogicalPlan])] = Seq(
    "describe" -> (words => described(words, "DESCRIBE")),
    "desc" -> (words => described(words, "DESC")),
    "optimize" -> (words => after(words, "OPTIMIZE")(optimized)),
    "vacuum" -> (words => after(words, "VACUUM")(vacuumed)),
    "restore" -> (words =>
      after(words, "RESTORE", "TABLE")(restored).orElse(after(words, "RESTORE")(restored))),
    "show" -> (words =>
      shown(words, "BRANCHES", CatalogNames.Branch).orElse(shown(words, "TAGS", CatalogNames.Tag))))

  override def parse(words: StatementWords): Option[LogicalPlan] =
    verbs.collectFirst { case (verb, parsed) if words.beginWith(verb) => parsed }.flatMap(_(words))

  /** The statement that begins so, if a table of lakelog's is named next. */
  private def after(words: StatementWords, begin: String*)(
      parsed: StatementWords => InWords): Option[LogicalPlan] =
    if (!words.take(begin: _*)) None
    else tableOf(words).map { name =>
      val statement = parsed(words)
      words.expectEnd()
      StatementInWords(UnresolvedTable(name, statement.name, false), statement)
    }

  /** Takes the name of a table, or gives back what a statement begins with that is not about one of lakelog's. */
  private def tableOf(words: StatementWords): Option[Seq[String]] =
    words.name().flatMap(name => Try(words.partsOf(name)).toOption).filter(LakeNames.isTableOrPlace)

  /** Spark takes the text for that of a column's description, of a table `history` or `detail`, which therefore comes first. */
  private def described(words: StatementWords, verb: String): Option[LogicalPlan] = {
    def of(noun: String, statement: => InWords): Option[LogicalPlan] =
      if (!words.are(verb, noun)) None
      else {
        words.expect(verb)
        val own = words.next()
        tableOf(words).filterNot(name => name.length == 1 && LakeNames.isThere(Seq(own))).map { name =>
          val wanted = statement
          words.expectEnd()
          StatementInWords(UnresolvedTable(name, s"DESCRIBE $noun", false), wanted)
        }
      }
    of("HISTORY", ShowHistory(if (words.take("LIMIT")) Some(number(words)) else None))
      .orElse(of("DETAIL", ShowDetail))
  }

  private def optimized(words: StatementWords): InWords = {
    val full = words.take("FULL")
    val where = if (words.take("WHERE")) Some(words.until("ZORDER")) else None
    val columns = if (!words.take("ZORDER", "BY")) Nil
    else if (words.take("(")) {
      val columns = namesOf(words)
      words.expect(")")
      columns
    } else namesOf(words)
    Optimize(where, columns, full)
  }

  private def namesOf(words: StatementWords): Seq[Seq[String]] = {
    val first = words.partsOf(words.name().getOrElse(words.fail()))
    if (words.take(",")) first +: namesOf(words) else Seq(first)
  }

  private def vacuumed(words: StatementWords): InWords = {
    val hours = if (words.take("RETAIN")) {
      val hours = number(words)
      words.expect("HOURS")
      Some(hours)
    } else None
    val dryRun = words.take("DRY", "RUN")
    if (words.are("LITE") || words.are("FULL") || words.are("USING")) {
      words.fail(": vacuum finds by itself what to delete, so leave this out")
    }
    Vacuum(hours, dryRun)
  }

  private def restored(words: StatementWords): InWords = {
    if (!words.are("VERSION", "AS", "OF") && !words.are("TIMESTAMP", "AS", "OF")) words.expect("TO")
    if (words.take("VERSION", "AS", "OF")) Restore(version = Some(number(words)), time = None)
    else {
      words.expect("TIMESTAMP", "AS", "OF")
      Restore(version = None, time = Some(words.until()))
    }
  }

  private def shown(words: StatementWords, plural: String, kind: String): Option[LogicalPlan] =
    if (!words.are("SHOW", plural, "IN") && !words.are("SHOW", plural, "FROM")) None
    else {
      words.expect("SHOW", plural)
      if (!words.take("IN")) words.expect("FROM")
      tableOf(words).map { name =>
        words.expectEnd()
        StatementInWords(UnresolvedTable(name, s"SHOW $plural", false), ShowRefs(plural, kind))
      }
    }

  private def number(words: StatementWords): Long =
    words.next().toLongOption.getOrElse(words.failBefore(": a whole number has to stand there"))
}
