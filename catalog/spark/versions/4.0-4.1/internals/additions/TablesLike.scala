package org.apache.spark.sql.lakelog.internals.additions

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchTableException, TableAlreadyExistsException}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.{CatalogManager, CatalogPlugin, CatalogV2Util, Identifier, LookupCatalog, Table, TableCatalog, V1Table}
import org.apache.spark.sql.execution.SparkSqlParser
import org.apache.spark.sql.execution.command.CreateTableLikeCommand
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{Failures, SessionInternals}
import org.apache.spark.sql.lakelog.internals.seam.{NewerTableCatalog, Tables, View}
import org.apache.spark.sql.lakelog.internals.statements.{LakeCommand, LakeNames, LakeStatement, StatementWords}
import org.apache.spark.sql.lakelog.names.EntranceNames

/** CREATE TABLE … LIKE in a lakelog catalog, which this Spark has for its session catalog only. */
private[lakelog] object TablesLike extends LakeStatement {

  override def parse(words: StatementWords): Option[LogicalPlan] =
    if (!words.beginWith("create") || !words.take("CREATE", "TABLE")) None
    else {
      val ifNotExists = words.take("IF", "NOT", "EXISTS")
      words.name().filter(_ => words.take("LIKE")).map(words.partsOf).flatMap(LakeNames.tableCatalog).flatMap {
        case (catalog: NewerTableCatalog, target) =>
          val source = words.partsOf(words.name().getOrElse(words.fail()))
          val rest = if (words.isAtEnd) "" else words.until()
          // The other clauses are Spark's, whatever the names are.
          new SparkSqlParser().parsePlan(s"CREATE TABLE a LIKE b $rest") match {
            case like: CreateTableLikeCommand if isOfLake(catalog, source, like) =>
              Some(CreateTableLike(catalog, target, source, ifNotExists, like))
            case _: CreateTableLikeCommand => None
            case _ => words.fail()
          }
        case _ => None
      }
    }

  /** In the session catalog, Spark itself makes copies that are not lakelog's of tables that are not. */
  private def isOfLake(catalog: TableCatalog, source: Seq[String], like: CreateTableLikeCommand): Boolean =
    catalog.isInstanceOf[CatalogAccess] || LakeNames.isTable(source) || like.provider.exists(EntranceNames.isFormat)
}

private[lakelog] case class CreateTableLike(
    catalog: NewerTableCatalog, ident: Identifier, from: Seq[String], ifNotExists: Boolean,
    like: CreateTableLikeCommand)
  extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (like.fileFormat.inputFormat.isDefined || like.fileFormat.serde.isDefined) throw Failures.unsupported(
      "STORED AS and ROW FORMAT are for Hive's tables: name the format of the copy with USING.")
    if (!catalog.tableExists(ident)) {
      val location = like.fileFormat.locationUri.map(TableCatalog.PROP_LOCATION -> _.toString)
      val provider = like.provider.map(TableCatalog.PROP_PROVIDER -> _)
      val properties = CatalogV2Util.withDefaultOwnership(like.properties ++ location ++ provider)
      source match {
        case Left(table) =>
          val info = Tables.constrained(
            Tables.info(table.columns, table.partitioning, properties.asJava), Tables.constraintsOf(table))
          catalog.createTableLike(ident, info, table)
        case Right(table) =>
          catalog.createTableLike(ident, SessionInternals.likeness(table.v1Table, properties), table)
      }
    } else if (!ifNotExists) throw new TableAlreadyExistsException(catalog.name +: ident.namespace.toSeq :+ ident.name)
    Nil
  }

  /** A table or view of a lakelog catalog or of the session's own, or a table of another catalog. */
  private def source: Either[Table, V1Table] =
    if (ViewPlans.isTemporary(from)) Right(ofSession(from.last, from.init.lastOption))
    else (from, LakeNames.find(from)) match {
      case (_, Some((lake, at))) => lake.loadRelation(at) match {
          case table: Table => Left(table)
          case view: View => Right(bare(ViewPlans.described(lake, at, view).copy(viewText = None)))
          case _ => throw new NoSuchTableException(lake.named(at))
        }
      case (Named(other, at), _) if CatalogV2Util.isSessionCatalog(other) =>
        LakeNames.table(from).toLeft(ofSession(at.name, at.namespace.lastOption))
      case (Named(other: TableCatalog, at), _) => Left(other.loadTable(at))
      case _ => throw new NoSuchTableException(from)
    }

  private object Named extends LookupCatalog {
    override protected lazy val catalogManager: CatalogManager = ClassicSession.active.sessionState.catalogManager
    def unapply(parts: Seq[String]): Option[(CatalogPlugin, Identifier)] = CatalogAndIdentifier.unapply(parts)
  }

  private def ofSession(name: String, database: Option[String]): V1Table =
    bare(SessionInternals.described(TableIdentifier(name, database)))

  /** As in Spark's own copies, the properties are those of the statement alone. */
  private def bare(table: CatalogTable): V1Table =
    V1Table(table.copy(properties = Map.empty, storage = table.storage.copy(properties = Map.empty)))
}
