package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.{Row, SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{PersistedView, ResolvedIdentifier, TableAlreadyExistsException}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Identifier, TableCatalog, V1Table}
import org.apache.spark.sql.execution.command.{AlterTableRenameCommand, CreateTableLikeCommand, CreateViewCommand}
import org.apache.spark.sql.execution.datasources.CreateTable
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.catalogs.SessionNamespaces
import org.apache.spark.sql.lakelog.internals.{ErrorInternals, Failures, SchemaInternals, SessionInternals, SparkAbilities}
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Keeps Spark's own commands for its session catalog, which do not ask `LakeSessionCatalog`, from taking names that are
 * lakelog's; and gives them the databases that so far only lakelog has.
 *
 * Between the look here and the command, another session may create a table of the name; it is then refused as one that
 * both have.
 */
private[lakelog] object SessionNames extends (SparkSession => Rule[LogicalPlan]) {

  private val seen = TreeNodeTag[Unit]("lakelog.SessionNames")

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.SessionNames"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case command if isOfSession(command) && command.getTagValue(seen).isEmpty =>
        command.setTagValue(seen, ())
        SessionNamespaces.active.map(replaced(command, _)).getOrElse(command)
    }
  }

  private def isOfSession(command: LogicalPlan): Boolean = command match {
    case _: CreateTable | _: CreateTableLikeCommand | _: CreateViewCommand | _: AlterTableRenameCommand => true
    case MetricView(_, _, _) => true
    case _ => false
  }

  private def replaced(command: LogicalPlan, catalog: SessionNamespaces): LogicalPlan = command match {
    case CreateTable(table, SaveMode.Overwrite, _) if table.provider.exists(EntranceNames.isFormat) =>
      throw Failures.invalid(
        s"${named(table.identifier, catalog)} is a table of the session catalog in another format, which lakelog does not " +
          "replace: drop it first.")
    case CreateTable(table, mode, query) if isNew(table.identifier, catalog) => command
    case CreateTable(table, mode, query) => onLakelogs(table, mode, query, catalog)

    case like: CreateTableLikeCommand if like.provider.exists(EntranceNames.isFormat) =>
      CreateLakeTableLike(catalog, like)
    case like: CreateTableLikeCommand if isNew(like.targetTable, catalog) => like
    case like: CreateTableLikeCommand => if (like.ifNotExists) NothingToDo() else throw taken(like.targetTable, catalog)

    case view: CreateViewCommand if view.viewType != PersistedView || isNew(view.name, catalog) => view
    case view: CreateViewCommand => onLakelogs(view.name, view.allowExisting, view.replace, catalog)
    case MetricView(name, _, _) if isNew(name, catalog) => command
    case MetricView(name, allowsExisting, replaces) => onLakelogs(name, allowsExisting, replaces, catalog)

    case rename: AlterTableRenameCommand =>
      val target = rename.newName.copy(database = rename.newName.database.orElse(rename.oldName.database))
      if (!SessionInternals.isTemporaryView(rename.oldName) && !isNew(target, catalog)) throw taken(target, catalog)
      rename
    case other => other
  }

  /** Whether lakelog has no table of that name. Then the session catalog may have one, in a database that it may lack yet. */
  private def isNew(name: TableIdentifier, catalog: SessionNamespaces): Boolean = {
    val ident = SessionInternals.qualified(name)
    !catalog.isOfLake(ident) && {
      catalog.makeInSession(ident.namespace)
      true
    }
  }

  /** A view is to be created if lakelog has a table. */
  private def onLakelogs(
      name: TableIdentifier, allowsExisting: Boolean, replaces: Boolean, catalog: SessionNamespaces): LogicalPlan =
    if (allowsExisting) NothingToDo()
    else if (replaces) throw ErrorInternals.viewOnTable(catalog.lake.named(SessionInternals.qualified(name)))
    else throw taken(name, catalog)

  /** CREATE VIEW … WITH METRICS, a command that Spark 4.2 lacks: its name, IF NOT EXISTS and OR REPLACE. */
  private object MetricView {
    def unapply(command: LogicalPlan): Option[(TableIdentifier, Boolean, Boolean)] =
      if (!SparkAbilities.isMetricView(command)) None
      else (command.children, command.productIterator.collect { case flag: Boolean => flag }.toSeq) match {
        case (Seq(ResolvedIdentifier(catalog, ident)), Seq(allowsExisting, replaces))
            if CatalogV2Util.isSessionCatalog(catalog) =>
          Some((TableIdentifier(ident.name, ident.namespace.headOption), allowsExisting, replaces))
        case _ => None
      }
  }

  private def named(name: TableIdentifier, catalog: SessionNamespaces): String =
    SchemaInternals.quoted(catalog.lake.named(SessionInternals.qualified(name)))

  private def taken(name: TableIdentifier, catalog: SessionNamespaces): Throwable =
    new TableAlreadyExistsException(catalog.lake.named(SessionInternals.qualified(name)))

  /**
   * A table of the session catalog is to be created if lakelog has one. A DataFrame's saveAsTable comes so unless it
   * says format("lakelog"); in the default format it appends to whatever is there.
   */
  private def onLakelogs(
      wanted: CatalogTable, mode: SaveMode, query: Option[LogicalPlan], catalog: SessionNamespaces): LogicalPlan = {
    val ident = SessionInternals.qualified(wanted.identifier)
    (mode, query) match {
      case (SaveMode.Ignore, _) => NothingToDo()
      case (SaveMode.Append, Some(rows)) =>
        val table = catalog.loadTable(ident)
        val name = named(wanted.identifier, catalog)
        def listed(columns: Seq[String]) = columns.mkString("partitioned by ", ", ", "")
        if (!wanted.provider.contains(SessionInternals.defaultProvider)) throw Failures.invalid(
          s"$name is a lakelog table, to which rows cannot be appended in the format ${wanted.provider.getOrElse("")}.")
        val partitions = table.partitioning.map(_.describe).toSeq
        if (wanted.partitionColumnNames.nonEmpty && wanted.partitionColumnNames != partitions) throw Failures.invalid(
          s"$name is ${if (partitions.isEmpty) "not partitioned" else listed(partitions)}, and not " +
            s"${listed(wanted.partitionColumnNames)}.")
        val options = new CaseInsensitiveStringMap(java.util.Map.copyOf(asJava(wanted.storage.properties)))
        AppendData.byName(
          DataSourceV2Relation.create(table, Some(catalog), Some(ident), options), rows, wanted.storage.properties)
      case (SaveMode.Overwrite, _) => throw Failures.invalid(
          s"${named(wanted.identifier, catalog)} is a lakelog table, which is not replaced by one in the format " +
            s"${wanted.provider.getOrElse("")}: write format(\"lakelog\"), or drop it first.")
      case _ => throw taken(wanted.identifier, catalog)
    }
  }

  private def asJava(options: Map[String, String]): java.util.Map[String, String] = {
    import scala.jdk.CollectionConverters._
    options.asJava
  }
}

/** What is left of a command that finds things as it would have made them. */
private[lakelog] case class NothingToDo() extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = Nil
}

/** CREATE TABLE … LIKE a table or view of the session catalog's USING lakelog. */
private[lakelog] case class CreateLakeTableLike(catalog: SessionNamespaces, like: CreateTableLikeCommand)
  extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val ident: Identifier = SessionInternals.qualified(like.targetTable)
    if (!catalog.tableExists(ident)) {
      val source = SessionInternals.described(like.sourceTable)
      val location = like.fileFormat.locationUri.map(TableCatalog.PROP_LOCATION -> _.toString)
      val properties = like.properties ++ location + (TableCatalog.PROP_PROVIDER -> EntranceNames.Format)
      // As in Spark's own copies, the properties are those of the statement alone.
      val bare = source.copy(properties = Map.empty, storage = source.storage.copy(properties = Map.empty))
      catalog.createTableLike(ident, SessionInternals.likeness(source, properties), V1Table(bare))
    } else if (!like.ifNotExists) throw new TableAlreadyExistsException(catalog.lake.named(ident))
    Nil
  }
}
