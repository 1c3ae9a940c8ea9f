package org.apache.spark.sql.lakelog

import java.util.{Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException, TableAlreadyExistsException}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.lakelog.catalogs.SessionNamespaces
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals, SessionInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Changelog, ChangelogContext, Changes, TableInfo, Tables, TableSummary, Transaction, TransactionalCatalogPlugin, TransactionInfo}
import org.apache.spark.sql.lakelog.names.{EntranceNames, Locations, SavedPlace}
import org.apache.spark.sql.lakelog.session.ForeignTables
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Spark's session catalog with lakelog's tables among its own.
 *
 * A lakelog catalog owns lakelog's tables, the session catalog everything else: other tables, views,
 * functions. Neither holds anything for the other. A name is one's or the other's; a table that both have is refused
 * wherever it is named. A namespace is there if either has it, and is made in the other when something is created in it.
 * Statements that create the session catalog's own objects do not pass here: [[SessionNames]] handles them.
 */
class LakeSessionCatalog extends SessionNamespaces with ProcedureCatalog with TransactionalCatalogPlugin {

  private var ours: LakeCatalog = _

  override private[lakelog] def lake: LakeCatalog = ours

  override def initialize(name: String, settings: CaseInsensitiveStringMap): Unit = {
    if (name != SessionInternals.CatalogName) {
      throw Failures.invalid(
        s"${getClass.getName} is for ${SessionInternals.CatalogName}: set spark.sql.catalog.$name to " +
          s"${EntranceNames.Catalog}.")
    }
    // Without it, names that are lakelog's could be taken by Spark's own commands.
    if (!EntranceNames.hasExtension) {
      throw Failures.invalid(
        s"${getClass.getName} needs lakelog's session extension: start the session with " +
          s"spark.sql.extensions=${EntranceNames.Extensions}.")
    }
    ours = new LakeCatalog
    lake.initialize(name, settings)
  }

  // ---- whose a name is

  /** Names as they are written, then in the session catalog's small letters: others may have made tables with capitals. */
  private def spellings(written: Identifier): Seq[Identifier] = {
    val ident = SavedPlace.ofCatalog(written)
    if (Locations.isPath(ident) || SettingInternals.isCaseSensitive) Seq(ident)
    else Seq(ident, SessionNamespaces.folded(ident)).distinct
  }

  /** The name of lakelog's table, if there is one; not for a name that both have. */
  private def found(ident: Identifier): Option[Identifier] = {
    val own = spellings(ident).find(lake.tableExists)
    own.foreach(refuseBoth)
    own
  }

  override private[lakelog] def isOfLake(ident: Identifier): Boolean = found(ident).isDefined

  private[lakelog] def isOfSession(ident: Identifier): Boolean =
    ident.namespace.length == 1 && !Locations.isPath(SavedPlace.ofCatalog(ident)) && tables.tableExists(ident)

  private def refuseBoth(ident: Identifier): Unit = if (isOfSession(ident)) {
    throw Failures.invalid(
      s"${SchemaInternals.quoted(lake.named(ident))} is both a lakelog table and a table of the session catalog, so " +
        "it is not known which is meant. Rename one: lakelog's in a catalog of another name on the same warehouse, or " +
        "the other one in a session without lakelog.")
  }

  /** What `load` finds in lakelog, or what the session catalog has. */
  private def loaded(ident: Identifier)(load: Identifier => Table)(otherwise: => Table): Table =
    spellings(ident).iterator.flatMap { name =>
      try Some(name -> load(name))
      catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
    }.nextOption() match {
      case Some((name, table)) =>
        refuseBoth(name)
        table
      case None if ident.namespace.length == 1 => otherwise
      case None => throw new NoSuchTableException(lake.named(SavedPlace.ofCatalog(ident)))
    }

  private def route[T](ident: Identifier)(inLake: Identifier => T)(inSession: => T): T =
    found(ident).map(inLake).getOrElse(inSession)

  private def isLakes(properties: JMap[String, String]): Boolean =
    EntranceNames.isFormat(properties.getOrDefault(TableCatalog.PROP_PROVIDER, SessionInternals.defaultProvider))

  /** Runs `create` with the name that a new lakelog table gets, when that is free and its namespace is there. */
  private def anew[T](ident: Identifier)(create: Identifier => T): T =
    if (Locations.isPath(SavedPlace.ofCatalog(ident))) create(SavedPlace.ofCatalog(ident))
    else {
      if (isOfSession(ident)) throw new TableAlreadyExistsException(lake.named(ident))
      val name = spellings(ident).find(lake.tableExists).getOrElse(spellings(ident).last)
      makeInLake(name.namespace)
      create(name)
    }

  /** Runs `create` for a new table of the session catalog, when lakelog has none of the name. */
  private def beside[T](ident: Identifier)(create: => T): T = {
    if (isOfLake(ident)) throw new TableAlreadyExistsException(lake.named(ident))
    makeInSession(ident.namespace)
    create
  }

  // ---- tables

  override def capabilities(): JSet[TableCatalogCapability] =
    (tables.capabilities.asScala ++ lake.capabilities.asScala).asJava

  override def listTables(names: Array[String]): Array[Identifier] = {
    val own = ofLake(names)(lake.listTables)
    val others = ofSession(names)(tables.listTables).getOrElse {
      if (own.isEmpty) tables.listTables(names) else SessionInternals.temporaryViews
    }
    val (temporary, persistent) = others.partition(_.namespace.isEmpty)
    (persistent ++ own.getOrElse(Array.empty[Identifier])).distinct.sortBy(_.name) ++ temporary
  }

  override def listTableSummaries(names: Array[String]): Array[TableSummary] = {
    val own = ofLake(names)(lake.listTableSummaries)
    val others = ofSession(names)(Tables.summaries(tables, _)).getOrElse(
      if (own.isEmpty) Tables.summaries(tables, names) else Array.empty[TableSummary])
    others ++ own.getOrElse(Array.empty[TableSummary])
  }

  override def tableExists(ident: Identifier): Boolean = isOfLake(ident) || isOfSession(ident)

  override def loadTable(ident: Identifier): Table = loaded(ident)(lake.loadTable)(super.loadTable(ident))

  override def loadTable(ident: Identifier, privileges: JSet[TableWritePrivilege]): Table =
    loaded(ident)(lake.loadTable(_, privileges))(tables.loadTable(ident, privileges))

  override def loadTable(ident: Identifier, version: String): Table =
    loaded(ident)(lake.loadTable(_, version))(super.loadTable(ident, version))

  override def loadTable(ident: Identifier, timestampUs: Long): Table =
    loaded(ident)(lake.loadTable(_, timestampUs))(super.loadTable(ident, timestampUs))

  override def loadChangelog(
      ident: Identifier, context: ChangelogContext, options: CaseInsensitiveStringMap): Changelog =
    route(ident)(lake.loadChangelog(_, context, options))(Changes.load(tables, ident, context, options))

  override def invalidateTable(ident: Identifier): Unit = if (isOfSession(ident)) super.invalidateTable(ident)

  override def createTable(ident: Identifier, info: TableInfo): Table =
    if (isLakes(info.properties)) anew(ident)(lake.createTable(_, info))
    else beside(ident) {
      ForeignTables.refuseConstraints(info)
      Tables.create(tables, ident, info)
    }

  override def createTable(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): Table =
    createTable(ident, ForeignTables.info(columns, partitions, properties))

  override def createTable(
      ident: Identifier, schema: StructType, partitions: Array[Transform], properties: JMap[String, String]): Table =
    createTable(ident, SchemaInternals.columnsOf(schema), partitions, properties)

  /** Without USING, the copy is of the source's kind. */
  override def createTableLike(ident: Identifier, info: TableInfo, source: Table): Table = {
    ForeignTables.refuseStoredAs(info)
    val stated = Option(info.properties.get(TableCatalog.PROP_PROVIDER))
    val isLakes = stated.map(EntranceNames.isFormat).getOrElse(source.isInstanceOf[LakeTable])
    if (isLakes) anew(ident)(lake.createTableLike(_, info, source))
    else beside(ident) {
      ForeignTables.refuseConstraints(info)
      Tables.create(tables, ident, info)
    }
  }

  override def alterTable(ident: Identifier, changes: TableChange*): Table =
    route(ident)(lake.alterTable(_, changes: _*))(super.alterTable(ident, changes: _*))

  override def dropTable(ident: Identifier): Boolean = route(ident)(lake.dropTable)(super.dropTable(ident))

  override def purgeTable(ident: Identifier): Boolean = route(ident)(lake.purgeTable)(super.purgeTable(ident))

  override def renameTable(from: Identifier, to: Identifier): Unit = {
    val target = lake.withoutCatalog(to)
    route(from)(name => anew(target)(lake.renameTable(name, _)))(beside(target)(super.renameTable(from, target)))
  }

  // ---- staged tables

  override def stageCreate(ident: Identifier, info: TableInfo): StagedTable =
    if (isLakes(info.properties)) anew(ident)(lake.stageCreate(_, info))
    else beside(ident)(ForeignTables.stageCreate(tables, ident, info))

  override def stageReplace(ident: Identifier, info: TableInfo): StagedTable =
    if (isLakes(info.properties)) anew(ident)(lake.stageReplace(_, info))
    else beside(ident)(ForeignTables.stageReplace(tables, ident, info))

  override def stageCreateOrReplace(ident: Identifier, info: TableInfo): StagedTable =
    if (isLakes(info.properties)) anew(ident)(lake.stageCreateOrReplace(_, info))
    else if (isOfSession(ident)) stageReplace(ident, info)
    else stageCreate(ident, info)

  override def stageCreate(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stageCreate(ident, ForeignTables.info(columns, partitions, properties))

  override def stageReplace(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stageReplace(ident, ForeignTables.info(columns, partitions, properties))

  override def stageCreateOrReplace(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stageCreateOrReplace(ident, ForeignTables.info(columns, partitions, properties))

  // ---- functions: of the session catalog, except those by which lakelog's tables are partitioned

  override def loadFunction(ident: Identifier): UnboundFunction =
    lake.transform(ident).getOrElse(super.loadFunction(ident))

  override def functionExists(ident: Identifier): Boolean =
    lake.transform(ident).isDefined || (ident.namespace.length == 1 && super.functionExists(ident))

  // ---- procedures and transactions: lakelog's

  override def loadProcedure(ident: Identifier): UnboundProcedure = lake.loadProcedure(ident)

  override def listProcedures(names: Array[String]): Array[Identifier] =
    if (isInSession(names)) Array.empty else lake.listProcedures(names)

  override def beginTransaction(info: TransactionInfo): Transaction = lake.beginTransaction { inner: LakeCatalog =>
    val within = new LakeSessionCatalog
    within.setDelegateCatalog(delegate)
    within.ours = inner
    within
  }

  /** That of a session and those of its statements are one, as lakelog's are. */
  override def equals(other: Any): Boolean = other match {
    case that: LakeSessionCatalog => lake == that.lake
    case _ => false
  }

  override def hashCode: Int = lake.hashCode

  override def toString: String = s"LakeSessionCatalog($name)"
}
