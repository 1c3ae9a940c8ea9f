package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.statements.{LakeCommand, LakeNames, LakeStatement, StatementWords}
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * Clones, in Delta's words, by the procedure clone:
 *
 * {{{
 * CREATE TABLE [IF NOT EXISTS] b [SHALLOW] CLONE a [VERSION AS OF number | TIMESTAMP AS OF time]
 * }}}
 */
private[lakelog] object CloneStatements extends LakeStatement {

  override def parse(words: StatementWords): Option[LogicalPlan] =
    if (!words.beginWith("create")) None
    else {
      val replaces = words.take("CREATE", "OR", "REPLACE", "TABLE")
      if (!replaces && !words.take("CREATE", "TABLE")) None
      else {
        val ifNotExists = words.take("IF", "NOT", "EXISTS")
        val target =
          words.name().filter(_ => words.are("CLONE") || words.are("SHALLOW", "CLONE") || words.are("DEEP", "CLONE"))
        target.map(words.partsOf).flatMap(LakeNames.find).map { case (catalog, target) =>
          if (replaces) words.fail(": a clone is a new table, so drop the one of that name first")
          if (words.are("DEEP")) {
            words.fail(": make a clone, and copy its files by ALTER TABLE … MATERIALIZE")
          }
          words.take("SHALLOW")
          words.expect("CLONE")
          parsed(words, catalog.name, target, ifNotExists)
        }
      }
    }

  private def parsed(words: StatementWords, catalog: String, target: Identifier, ifNotExists: Boolean): LogicalPlan = {
    val named = words.name().getOrElse(words.fail())
    val source = LakeNames.find(words.partsOf(named)).collect { case (of, ident) if of.name == catalog => ident }
      .getOrElse(words.fail(s": $named is not in the catalog $catalog, and a clone has the files of a table beside it"))
    val version = if (words.take("VERSION", "AS", "OF")) words.until() else "NULL"
    val time = if (words.take("TIMESTAMP", "AS", "OF")) s"CAST(${words.until()} AS TIMESTAMP)" else "NULL"
    words.expectEnd()
    CloneTable(catalog,
      Seq(
        "source" -> ProcedureCall.name(source),
        "target" -> ProcedureCall.name(target),
        "version" -> version,
        "timestamp" -> time,
        "if_not_exists" -> ifNotExists.toString))
  }
}

private[lakelog] case class CloneTable(catalog: String, arguments: Seq[(String, String)]) extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = {
    ProcedureCall(session, catalog, "clone", arguments)
    Nil
  }
}

/** `ALTER TABLE b MATERIALIZE`, by the procedure materialize. */
private[lakelog] object MaterializeStatement extends AlterTableStatement {

  override protected val begins: Seq[Seq[String]] = Seq(Seq("MATERIALIZE"))

  override protected def parsed(words: StatementWords): TableStatement = {
    words.expect("MATERIALIZE")
    words.expectEnd()
    MaterializeTable
  }
}

private case object MaterializeTable extends TableStatement {
  override def run(table: LakeTable): Unit = {
    table.refuseOnRef("ALTER TABLE … MATERIALIZE")
    ProcedureCall(
      SparkSession.active, table.access.catalog, "materialize", Seq("table" -> ProcedureCall.name(table.access.ident)))
  }
}
