package org.apache.spark.sql.lakelog.foreign

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals, SessionInternals}
import org.apache.spark.sql.lakelog.internals.statements.{LakeNames, LakeStatement, StatementWords}
import org.apache.spark.sql.lakelog.names.CatalogNames

/**
 * Statements that others have for their tables, and lakelog does in another way: about one of lakelog's tables, the error names
 * that way, if Spark's parser would only say that it does not know the words.
 */
private[lakelog] object RefusedStatements extends LakeStatement {

  /** How a statement begins, up to the table's name, what stands behind the name, and what to do instead. */
  private final case class Refused(begin: Seq[String], behind: Seq[String], instead: String) {
    def name: String = (begin ++ (if (begin.contains("ALTER")) behind else Nil)).mkString(" ")
  }

  private def row(begin: String, behind: String, instead: String): Refused =
    Refused(begin.split(' ').toSeq, behind.split(' ').toSeq.filter(_.nonEmpty), instead)

  private val primaryKey = "use ALTER TABLE {} ADD CONSTRAINT pk PRIMARY KEY (…)"
  private val features = "leave it out, as lakelog's tables have no features to switch"

  private val all: Seq[Refused] = Seq(
    row("CONVERT TO DELTA", "",
      "{} is a lakelog table, and tables of other formats become one by CALL {system}.import_table(source, format, table)"),
    row("CONVERT TO ICEBERG", "", "use CALL {system}.export_iceberg('{}')"),
    row("REORG TABLE", "APPLY ( UPGRADE",
      "use CALL {system}.export_iceberg('{}'), or the table property lakelog.iceberg = on"),
    row("REORG TABLE", "", "use CALL {system}.compact('{}')"),
    row("GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE", "",
      "readers without lakelog find the table by CALL {system}.export_iceberg('{}')"),
    row("FSCK REPAIR TABLE", "", "use CALL {system}.fsck('{}', repair => true)"),
    row("UNDROP TABLE", "", "use CALL {system}.undrop_table('{}')"),
    row("COPY INTO", "", "use INSERT INTO {} SELECT … FROM parquet.`/path`, or CALL {system}.add_files('{}', '/path')"),
    row("CREATE BLOOMFILTER INDEX ON TABLE", "",
      "use ALTER TABLE {} SET TBLPROPERTIES ('lakelog.bloom-filter.columns' = '…')"),
    row("DROP BLOOMFILTER INDEX ON TABLE", "", "use ALTER TABLE {} UNSET TBLPROPERTIES ('lakelog.bloom-filter.columns')"),
    row("ALTER TABLE", "SET IDENTIFIER FIELDS", primaryKey),
    row("ALTER TABLE", "DROP IDENTIFIER FIELDS", "use ALTER TABLE {} DROP CONSTRAINT"),
    row("ALTER TABLE", "ADD FEATURE", features),
    row("ALTER TABLE", "DROP FEATURE", features),
    row("ALTER TABLE", "FAST FORWARD", "use CALL {system}.fast_forward('{}', 'main', branch)"))

  private val verbs: Set[String] = all.map(_.begin.head.toLowerCase).toSet

  override def parse(words: StatementWords): Option[LogicalPlan] = {
    if (verbs.exists(words.beginWith)) {
      all.find(each => words.are(each.begin: _*)).foreach { first =>
        words.take(first.begin: _*)
        for {
          name <- words.name().flatMap(name => Try(words.partsOf(name)).toOption)
          refused <- all.find(each => each.begin == first.begin && words.are(each.behind: _*))
          // Last, as a catalog is asked for it.
          if LakeNames.isTableOrPlace(name)
        } throw Failures.unsupported(s"lakelog has no ${refused.name}: ${written(refused.instead, name)}.")
      }
    }
    None
  }

  private def written(instead: String, name: Seq[String]): String = {
    val catalog = LakeNames.find(name).map(_._1.name).getOrElse(SessionInternals.CatalogName)
    instead.replace("{}", SchemaInternals.quoted(name))
      .replace("{system}", s"${SchemaInternals.quoted(Seq(catalog))}.${CatalogNames.SystemNamespace}")
  }
}
