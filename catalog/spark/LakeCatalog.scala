package org.apache.spark.sql.lakelog

import java.util.{Locale, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.lakelog.bridge.{Bridge, BridgeSettings, PythonChoice}
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.changes.{LakeChangelog, TableChanges}
import org.apache.spark.sql.lakelog.columns.{Constraints, GeneratedColumns, OldRowValues}
import org.apache.spark.sql.lakelog.constraints.LakeConstraints
import org.apache.spark.sql.lakelog.functions.LakeFunctions
import org.apache.spark.sql.lakelog.internals.{CloudAccess, ColumnInternals, ErrorInternals, Failures, LakelogFailure, S3Access, SchemaInternals, SettingInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Changelog, ChangelogContext, Constraint, NewerStagingCatalog, Relation, TableInfo, Tables, TableSummary, Transaction, TransactionalCatalogPlugin, TransactionInfo}
import org.apache.spark.sql.lakelog.names.{CatalogNames, Locations}
import org.apache.spark.sql.lakelog.procedures.{LakeProcedure, ProcedureDeclaration, ProcedureJobs}
import org.apache.spark.sql.lakelog.read.TableOfSystem
import org.apache.spark.sql.lakelog.refs.{LakeRefs, RefTables, SessionBranch}
import org.apache.spark.sql.lakelog.session.{LakeSession, SavedPlaces, SparkTable, StagedLakeTable, StatementTransaction}
import org.apache.spark.sql.lakelog.show.{MetadataTables, NamespaceLooks, UnreadableTable}
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable, Requests, TableAccess, TableFacts}
import org.apache.spark.sql.lakelog.views.LakeViews
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.words.ForeignWords
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The catalog that Spark sees: it turns Spark's calls into requests to Python, and answers into Spark's objects.
 *
 * Its only state is the bridge. Each change carries a token that Python makes before the request, so that it can be
 * retried when the Python process dies. An identifier without namespace whose name is a path or an url is
 * the table at that place.
 */
class LakeCatalog extends NewerStagingCatalog with CatalogAccess with LakeFunctions with ProcedureCatalog
  with TransactionalCatalogPlugin with LakeViews with LakeRefs with LakeConstraints with SavedPlaces {

  private var catalogName: String = _
  private var options: Map[String, String] = Map.empty
  private[lakelog] var failures: Failures = _
  private[lakelog] var session: LakeSession = _

  override private[lakelog] def inSession: AnyRef = session
  private var statement: Option[StatementTransaction] = None

  private[lakelog] var shown: Option[String] = None

  override def initialize(name: String, settings: CaseInsensitiveStringMap): Unit = {
    catalogName = name
    options = settings.asScala.toMap
    failures = new Failures(name)
    session = new LakeSession(
      this, LakeCatalog.connection(options), SettingInternals.following(s"spark.sql.catalog.$name."))
    if (!options.contains("warehouse")) {
      throw Failures.invalid(
        s"The catalog $name has no warehouse: set spark.sql.catalog.$name.warehouse to a folder or the url of a bucket.")
    }
    S3Access.check(options("warehouse"))
    CloudAccess.check(options("warehouse"))
  }

  override def name: String = catalogName

  /** For plans, which name the catalog of a table that they create by this. */
  override def toString: String = s"LakeCatalog($catalogName)"

  // ---- namespaces

  override def listNamespaces(): Array[Array[String]] = listNamespaces(Array.empty)

  override def listNamespaces(parent: Array[String]): Array[Array[String]] = failures.namespace(parent) {
    ask(wire.ListNamespaces(parent.toSeq)).namespaces.map(_.toArray).toArray
  }

  override private[lakelog] def namespacesIfAny: Array[Array[String]] = failures.namespace(Array.empty) {
    ask(wire.ListNamespaces(Nil, ifAny = true)).namespaces.map(_.toArray).toArray
  }

  override def namespaceExists(names: Array[String]): Boolean = failures.namespace(names) {
    CatalogNames.isSystem(names) || ask(wire.LookUpNamespace(names.toSeq)).exists
  }

  override def loadNamespaceMetadata(names: Array[String]): JMap[String, String] = failures.namespace(names) {
    if (CatalogNames.isSystem(names)) JMap.of("comment", "lakelog's own procedures and tables")
    else NamespaceLooks.once(inSession, names)(ask(wire.LoadNamespace(names.toSeq)).properties.map {
      case (SupportsNamespaces.PROP_LOCATION, place) => SupportsNamespaces.PROP_LOCATION -> Locations.shown(place)
      case other => other
    }.asJava)
  }

  override def createNamespace(names: Array[String], properties: JMap[String, String]): Unit =
    failures.namespace(names) {
      refuseSystem(names)
      try channel.changeOnce(wire.CreateNamespace(names.toSeq, properties = properties.asScala.toMap))
      catch {
        case gone: LakelogFailure if gone.kind == "no-such-namespace" => throw failures.ofNamespace(gone, names.init)
      }
    }

  override def alterNamespace(names: Array[String], changes: NamespaceChange*): Unit = failures.namespace(names) {
    val set = changes.collect { case c: NamespaceChange.SetProperty => c.property -> c.value }
    val remove = changes.collect { case c: NamespaceChange.RemoveProperty => c.property }
    channel.changeOnce(wire.AlterNamespace(names.toSeq, set = set.toMap, remove = remove))
  }

  override def dropNamespace(names: Array[String], cascade: Boolean): Boolean = failures.namespace(names) {
    if (names.isEmpty) throw ErrorInternals.rootIsNotDropped(catalogName)
    channel.changeOnce(wire.DropNamespace(names.toSeq, cascade = cascade)).dropped
  }

  // ---- tables

  override def capabilities(): JSet[TableCatalogCapability] = (Set(
    TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE,
    TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS) ++ Tables.constraintCapabilities ++
    GeneratedColumns.capability.map(_ => TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS)).asJava

  override def listTables(names: Array[String]): Array[Identifier] = if (CatalogNames.isSystem(names)) {
    systemTables.keys.toArray.sorted.map(Identifier.of(names, _))
  } else failures.namespace(names) {
    ask(wire.ListTables(names.toSeq, shown)).tables.map(CatalogNames.identifier).toArray
  }

  /** One request for all tables. Which of them has its own location is known to the tables only. */
  override def listTableSummaries(names: Array[String]): Array[TableSummary] =
    listTables(names).map(Tables.summary(_, Tables.Managed))

  override def tableExists(ident: Identifier): Boolean = failures.table(ident) {
    systemTable(ident).isDefined || ask(wire.LookUpTable(CatalogNames.about(ident))).exists || isOnRef(ident)
  }

  override def loadRelation(ident: Identifier): Relation = systemTable(ident).getOrElse(statement match {
    case Some(transaction) => transaction.load(ident)(newest(ident))
    case None => UnreadableTable.orElse(ident)(newest(ident))
  })

  override def loadTable(ident: Identifier, privileges: JSet[TableWritePrivilege]): Table = toWrite(ident) match {
    case table: LakeTable =>
      // Spark begins no transaction for a DataFrame's write, which adds columns in one of the session only.
      val seen = if (statement.fold(isInTransaction)(_.hasEvolved)) table.evolved else table
      if (changesRows(ident, privileges)) seen.toBeChanged
      else if (privileges.contains(TableWritePrivilege.INSERT)) seen.toBeFilled
      else seen
    case table => table
  }

  private def toWrite(ident: Identifier): Table = session.refreshes.filling(ident) match {
    case Some(refresh) => refresh.target(loadToWrite(ident).asInstanceOf[LakeTable])(altered(ident, _, _, None))
    case None => loadToWrite(ident)
  }

  /** Spark asks for less when a MERGE that only inserts has added columns. */
  private def changesRows(ident: Identifier, privileges: JSet[TableWritePrivilege]): Boolean =
    if (privileges.contains(TableWritePrivilege.UPDATE)) {
      statement.foreach(_.changesRows(ident))
      true
    } else statement.exists(_.isChanging(ident))

  override private[lakelog] def isInTransaction: Boolean = session.isInTransaction

  override def loadTable(ident: Identifier, version: String): Table =
    RefTables.version(version) match {
      case Left(number) => load(ident, wire.LoadTable(_, version = Some(number)))
      case Right(name) => load(ident, wire.LoadTable(_, on = Some(wire.NamedRef(name))))
    }

  override def loadTable(ident: Identifier, timestampUs: Long): Table =
    load(ident, wire.LoadTable(_, timestampUs = Some(timestampUs)))

  private def load(ident: Identifier, past: wire.NamedObject => wire.LoadTable): Table = failures.table(ident) {
    val asked = channel
    def asOf(ident: Identifier): LakeTable =
      RefTables.orElse(ident, onRef(asked, ident, past))(
        table(ident, asked, asked.ask(past(CatalogNames.about(ident)))))
    MetadataTables.orElse(ident, asOf)(asOf(ident)).asInstanceOf[Table]
  }

  override def loadChangelog(
      ident: Identifier, context: ChangelogContext, options: CaseInsensitiveStringMap): Changelog =
    failures.table(ident) {
      val asked = channel
      def changes(of: Identifier, on: Option[wire.NamedRef]): LakeChangelog = {
        val answer = asked.ask(LakeChangelog.wanted(CatalogNames.about(of), context.range).copy(on = on))
        new LakeChangelog(new TableChanges(table(ident, asked, answer.facts), answer, context))
      }
      RefTables.orElse(ident, (of, ref) => changes(of, Some(ref)))(changes(ident, None))
    }

  private def newest(ident: Identifier): Relation =
    failures.table(ident)(MetadataTables.orElse(ident, newestOf)(newestOf(ident)))

  private def newestOf(ident: Identifier): Relation = {
    val asked = channel
    RefTables.orElse[Relation](ident, onRef(asked, ident)) {
      asked.ask(wire.LoadRelation(CatalogNames.about(ident))) match {
        case Left(found) => loadedView(ident, found.view)
        case Right(facts) => SessionBranch.read(table(ident, asked, facts))
      }
    }
  }

  override def createTable(
      ident: Identifier, schema: StructType, partitions: Array[Transform], properties: JMap[String, String]): Table =
    create(ident, schema, partitions, properties)

  override def createTable(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): Table =
    createTable(ident, OldRowValues.schemaOf(columns), partitions, properties)

  override def createTable(ident: Identifier, info: TableInfo): Table =
    create(ident, OldRowValues.schemaOf(info.columns), info.partitions, info.properties, info.constraints)

  /** CREATE TABLE … LIKE: Spark has put the source's columns, and what the statement overrides, into `info`. */
  override def createTableLike(ident: Identifier, info: TableInfo, source: Table): Table = {
    Some(source).collect { case table: LakeTable => table.refuseUncomputed() }
    val inherited = ColumnInternals.inherited(source, source.properties.asScala.toMap)
    val properties = (inherited ++ info.properties.asScala).asJava
    val order = Some(source).collect { case table: LakeTable => table.facts.own.sortOrder.map(Requests.stated) }
    val schema = OldRowValues.schemaOf(info.columns)
    create(ident, schema, info.partitions, properties, info.constraints, order.getOrElse(Nil))
  }

  /** Makes an empty table: stages it and commits that at once, in one request. */
  private def create(
      ident: Identifier, schema: StructType, partitions: Array[Transform], properties: JMap[String, String],
      constraints: Array[Constraint] = Array.empty, order: Seq[wire.StatedField] = Nil): Table =
    failures.table(ident) {
      if (partitions.exists(Requests.isClustering)) session.refreshes.refuseClustered(catalogName, ident)
      val asked = channel
      val staged = wire.PrepareTable(toBe("create", ident, schema, partitions, properties, constraints, order))
      // The stage is what Python answers first.
      val commit = wire.CommitStage(wire.StagedTable.ToCome, files = Nil)
      table(ident, asked, whole(ident)(asked.changeAfter(commit, staged, "stage")))
    }

  override def alterTable(ident: Identifier, changes: TableChange*): Table =
    failingAs(ident)(session.refreshes.changing(catalogName, ident) match {
      case Some(refresh) => refresh.change(changes, newest(ident).asInstanceOf[LakeTable])(altered(ident, _, _, None))
      case None => alter(ident, changes, None)
    })

  override private[lakelog] def alter(
      ident: Identifier, changes: Seq[TableChange], seen: Option[wire.LoadedTable]): Table = {
    refuseTornEvolution(ident)
    statement.foreach(_.beforeSchemaChange(newest))
    altered(ident, channel, changes, seen)
  }

  private def altered(
      ident: Identifier, asked: Channel, changes: Seq[TableChange], seen: Option[wire.LoadedTable]): LakeTable =
    ofWhole(ident, "alone has columns, constraints and properties: alter that.") {
      val ofConstraints = changes.exists(Requests.isOfConstraints)
      val current =
        if (ofConstraints) Some(table(ident, asked, asked.ask(wire.LoadTable(CatalogNames.about(ident))))) else None
      val looked = seen.orElse(current.flatMap(lookedAt(_, changes)))
      val wanted = changes.map(Requests.tableChange(_, current.map(_.schema)))
      table(ident, asked,
        asked.changeOnce(wire.AlterTable(CatalogNames.about(ident), changes = wanted, lookedAt = looked)))
    }

  override def dropTable(ident: Identifier): Boolean = drop(ident, purge = false)

  /** DROP TABLE … PURGE: it cannot be undone. */
  override def purgeTable(ident: Identifier): Boolean = drop(ident, purge = true)

  private def drop(ident: Identifier, purge: Boolean): Boolean = failures.table(ident) {
    if (systemTable(ident).isDefined) refuseSystem(ident.namespace)
    val dropped = channel.changeOnce(wire.DropTable(CatalogNames.about(ident), purge = purge)).dropped
    if (!dropped && isOnRef(ident)) refuseRef(ident, "ALTER TABLE … DROP BRANCH or DROP TAG drops.")
    dropped
  }

  override def renameTable(from: Identifier, to: Identifier): Unit = {
    if (Locations.isPath(from)) {
      throw Failures.unsupported(s"A table that is addressed by its path cannot be renamed: ${from.name}")
    }
    val target = withoutCatalog(to)
    failures.table(from) {
      try ofWhole(from, "cannot be renamed: create another one, and drop this one.")(
          channel.changeOnce(wire.RenameTable(CatalogNames.about(from), to = target.namespace.toSeq :+ target.name)))
      catch { case refused: LakelogFailure if Failures.isOfTarget(refused) => throw failures.ofTable(refused, target) }
    }
  }

  // ---- staged tables

  override def stageCreate(
      ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable = stage("create", ident, schema, partitions, properties)

  override def stageCreate(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stage("create", ident, OldRowValues.schemaOf(columns), partitions, properties)

  override def stageCreate(ident: Identifier, info: TableInfo): StagedTable = stage("create", ident, info)

  override def stageReplace(
      ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable = stage("replace", ident, schema, partitions, properties)

  override def stageReplace(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stage("replace", ident, OldRowValues.schemaOf(columns), partitions, properties)

  override def stageReplace(ident: Identifier, info: TableInfo): StagedTable = stage("replace", ident, info)

  override def stageCreateOrReplace(
      ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stage("create-or-replace", ident, schema, partitions, properties)

  override def stageCreateOrReplace(
      ident: Identifier, columns: Array[Column], partitions: Array[Transform],
      properties: JMap[String, String]): StagedTable =
    stage("create-or-replace", ident, OldRowValues.schemaOf(columns), partitions, properties)

  override def stageCreateOrReplace(ident: Identifier, info: TableInfo): StagedTable =
    stage("create-or-replace", ident, info)

  private def stage(kind: String, ident: Identifier, info: TableInfo): StagedLakeTable =
    stage(kind, ident, OldRowValues.schemaOf(info.columns), info.partitions, info.properties, info.constraints)

  override private[lakelog] def stage(
      kind: String, ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String], constraints: Array[Constraint], order: Seq[wire.StatedField]): StagedLakeTable =
    failures.table(ident) {
      SessionBranch.refuseLive(
        s"a table that is made or replaced with its rows, ${SchemaInternals.quoted(named(ident))},")
      val asked = channel
      val staged = whole(ident)(
        asked.ask(wire.StageTable(toBe(kind, ident, schema, partitions, properties, constraints, order))))
      new StagedLakeTable(table(ident, asked, staged.table), staged.stage)
    }

  private def toBe(
      kind: String, ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String], constraints: Array[Constraint], order: Seq[wire.StatedField])
      : wire.FutureTable = {
    refuseSystem(ident.namespace)
    checkNew(constraints)
    Option(properties.get(TableCatalog.PROP_PROVIDER)).foreach(ForeignWords.warnOfProvider(named(ident), _))
    Requests.newTable(kind, CatalogNames.about(ident), schema, partitions, properties)
      .copy(sortBy = order.map(Right(_)), constraints = constraints.toSeq.map(Constraints.stated(_, schema)))
  }

  private def whole[T](ident: Identifier)(change: => T): T =
    ofWhole(ident, "ALTER TABLE … CREATE BRANCH or CREATE TAG makes.")(change)

  // ---- what lakelog has in the namespace `system`

  private def systemTable(ident: Identifier): Option[Table] =
    if (!CatalogNames.isSystem(ident.namespace)) None
    else systemTables.get(ident.name).map(new TableOfSystem(catalogName, _, session.channel, failures))

  private lazy val systemTables: Map[String, wire.DeclaredTable] =
    ask(wire.ListSystemTables()).tables.map(table => table.name -> table).toMap

  override def listProcedures(names: Array[String]): Array[Identifier] =
    if (CatalogNames.isSystem(names)) procedures.keys.toArray.sorted.map(Identifier.of(names, _))
    else if (names.isEmpty || namespaceExists(names)) Array.empty
    else failures.namespace(names)(throw new LakelogFailure("no-such-namespace", names.mkString(".")))

  override def loadProcedure(ident: Identifier): UnboundProcedure = {
    val named =
      if (CatalogNames.isSystem(ident.namespace)) procedures.get(ident.name.toLowerCase(Locale.ROOT)) else None
    named.map { procedure =>
      val jobs = new ProcedureJobs(catalogName, failures, (ident, from, facts) => table(ident, from, facts), options)
      new LakeProcedure(procedure, failures, session.call(_, _, jobs))
    }
      .getOrElse {
        ForeignWords.refuseProcedure(catalogName, ident, procedures.keys)
        throw ErrorInternals.noSuchRoutine(catalogName +: ident.namespace.toSeq :+ ident.name)
      }
  }

  private lazy val procedures: Map[String, ProcedureDeclaration] =
    ask(wire.ListProcedures()).procedures.map(new ProcedureDeclaration(_))
      .map(procedure => procedure.name -> procedure).toMap

  // ---- the transactions of statements

  override def beginTransaction(info: TransactionInfo): Transaction = beginTransaction(identity[LakeCatalog] _)

  /** The transaction of a statement, to which `shown` gives the catalog that Spark shall ask in it. */
  private[lakelog] def beginTransaction(shown: LakeCatalog => CatalogPlugin): Transaction =
    new StatementTransaction(session, failures, transaction => shown(within(transaction)))

  /** The same catalog for one statement. */
  private[lakelog] def within(transaction: StatementTransaction): LakeCatalog = {
    val other = same
    other.statement = Some(transaction)
    other
  }

  override private[lakelog] def showing(pattern: String): LakeCatalog = {
    val other = same
    other.statement = statement
    other.shown = Some(pattern)
    other
  }

  private def same: LakeCatalog = {
    val other = new LakeCatalog
    other.catalogName = catalogName
    other.options = options
    other.failures = failures
    other.session = session
    other
  }

  /**
   * Spark changes the schema for a write WITH SCHEMA EVOLUTION while it analyses the statement, EXPLAIN included; without
   * a transaction of the statement, the change would stay whatever becomes of the data.
   */
  private def refuseTornEvolution(ident: Identifier): Unit =
    if (statement.isEmpty && StatementInternals.isEvolution && (!isInTransaction || StatementInternals.isExplained)) {
      throw Failures.unsupported(
        s"The schema of ${SchemaInternals.quoted(ident.namespace.toSeq :+ ident.name)} would be changed without the write: " +
          "use WITH SCHEMA EVOLUTION with INSERT, MERGE or writeTo, and saveAsTable, insertInto and save in a transaction " +
          "(CALL system.begin_transaction()). EXPLAIN the write without it.")
    }

  /** Those of a session and of its statements are one: Spark finds what it has cached of the one by the other. */
  override def equals(other: Any): Boolean = other match {
    case that: LakeCatalog => (this eq that) || (session != null && (session eq that.session))
    case _ => false
  }

  override def hashCode: Int = System.identityHashCode(session)

  // ---- asking

  override private[lakelog] def channel: Channel = statement.map(_.channel).getOrElse(session.channel)

  override private[lakelog] def table(ident: Identifier, from: Channel, facts: wire.TableFacts): LakeTable =
    new SparkTable(TableAccess(catalogName, ident, from, failures, options), TableFacts(facts))
}

private[lakelog] object LakeCatalog {

  /** Makes the connection when it is first needed; a reference to it keeps no catalog alive. */
  private def connection(options: Map[String, String]): () => Bridge = {
    lazy val bridge = {
      val python = PythonChoice.of(options.get("python"), PythonChoice.places)
      Bridge.of(BridgeSettings(python, options - "python"))
    }
    () => bridge
  }
}
