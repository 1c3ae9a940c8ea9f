package org.apache.spark.sql.lakelog.internals.additions

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{NoSuchTableException, TableAlreadyExistsException}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog, V1Table}
import org.apache.spark.sql.execution.SparkSqlParser
import org.apache.spark.sql.execution.command.CreateTableLikeCommand
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{SchemaInternals, SessionInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Tables, View}
import org.apache.spark.sql.lakelog.internals.statements.{LakeCommand, LakeNames, LakeStatement, StatementWords}

/** CREATE TABLE … LIKE in a lakelog catalog, which this Spark has for its session catalog only. */
private[lakelog] object TablesLike extends LakeStatement {

  override def parse(words: StatementWords): Option[LogicalPlan] =
    if (!words.beginWith("create") || !words.take("CREATE", "TABLE")) None
    else {
      val ifNotExists = words.take("IF", "NOT", "EXISTS")
      words.name().filter(_ => words.take("LIKE")).map(words.partsOf).flatMap(LakeNames.find).map {
        case (catalog, target) =>
          val source = words.partsOf(words.name().getOrElse(words.fail()))
          val rest = if (words.isAtEnd) "" else words.until()
          // The other clauses are Spark's, whatever the names are.
          new SparkSqlParser().parsePlan(s"CREATE TABLE a LIKE b $rest") match {
            case like: CreateTableLikeCommand => CreateTableLike(catalog, target, source, ifNotExists, like)
            case _ => words.fail()
          }
      }
    }
}

private[lakelog] case class CreateTableLike(
    catalog: CatalogAccess, ident: Identifier, from: Seq[String], ifNotExists: Boolean, like: CreateTableLikeCommand)
  extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (!catalog.tableExists(ident)) {
      val location = like.fileFormat.locationUri.map(TableCatalog.PROP_LOCATION -> _.toString)
      val provider = like.provider.map(TableCatalog.PROP_PROVIDER -> _)
      val properties = like.properties ++ location ++ provider
      source match {
        case Left(table) =>
          val info = Tables.constrained(
            Tables.info(table.columns, table.partitioning, properties.asJava), Tables.constraintsOf(table))
          catalog.createTableLike(ident, info, table)
        case Right(table) =>
          catalog.createTableLike(ident, SessionInternals.likeness(table.v1Table, properties), table)
      }
    } else if (!ifNotExists) throw new TableAlreadyExistsException(catalog.named(ident))
    Nil
  }

  /** A table or view of a lakelog catalog, or of the session's own. */
  private def source: Either[Table, V1Table] = LakeNames.find(from).filterNot(_ => ViewPlans.isTemporary(from)) match {
    case Some((lake, at)) => lake.loadRelation(at) match {
        case table: Table => Left(table)
        case view: View => Right(bare(ViewPlans.described(lake, at, view).copy(viewText = None)))
        case _ => throw new NoSuchTableException(lake.named(at))
      }
    case None => Right(bare(SessionInternals.described(CatalystSqlParser.parseTableIdentifier(
              SchemaInternals.quoted(from)))))
  }

  /** As in Spark's own copies, the properties are those of the statement alone. */
  private def bare(table: CatalogTable): V1Table =
    V1Table(table.copy(properties = Map.empty, storage = table.storage.copy(properties = Map.empty)))
}
