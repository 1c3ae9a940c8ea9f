package org.apache.spark.sql.lakelog.table

import java.util.{Locale, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Column, MetadataColumn, SupportsAtomicPartitionManagement, SupportsDeleteV2, SupportsMetadataColumns, SupportsRead, SupportsWrite, TableCapability, TableCatalog, TableChange}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.columns.{GeneratedColumns, IdentityColumn, IdentityColumns}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.files.BloomSettings
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, Failures, SchemaInternals, SettingInternals, SparkAbilities}
import org.apache.spark.sql.lakelog.internals.seam.{Check, Checks, Constraint, NewerTable, SupportsSchemaEvolution, Tables}
import org.apache.spark.sql.lakelog.names.{CatalogNames, Locations}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.words.ForeignWords
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * One version of a table. It never changes: Spark loads the table again for each statement.
 *
 * This is what scans and writes know of it. What makes scans and writes of it is [[SparkTable]].
 */
private[lakelog] abstract class LakeTable(val access: TableAccess, val facts: TableFacts)
  extends SupportsRead with SupportsWrite with SupportsDeleteV2 with SupportsSchemaEvolution
  with NewerTable with SupportsMetadataColumns with SupportsAtomicPartitionManagement {

  val physical: PhysicalSchema = new PhysicalSchema(facts.schema)

  /** Whether it is on a branch because the session is: see [[SessionBranch]]. */
  def isOfSession: Boolean = access.itself.isDefined

  /** The table that was named, if it is on a session's branch. */
  def itself: LakeTable = access.itself.fold(this)(same(access.copy(itself = None), _))

  /** A table of the same kind. */
  private[lakelog] def same(access: TableAccess, facts: TableFacts): LakeTable

  /** The table that a statement changes which names this one: it may be on the session's branch. */
  def written: LakeTable

  /** Whether it is to be read as it is, whatever else a statement reads. */
  def standsStill: Boolean = facts.past || access.channel.isInTransaction

  override def name: String = SchemaInternals.quoted(access.catalog +: access.ident.namespace.toSeq :+ access.ident.name)

  /** By it Spark distinguishes tables that have had the same name. */
  override def id: String = facts.ownId

  override def version: String = TableVersion.of(facts).toString

  override def schema: StructType = physical.logical

  override def columns: Array[Column] =
    IdentityColumns.describe(
      GeneratedColumns.describe(columnsOf(physical.identified), facts.schema), facts.schema)

  /**
   * Spark compares the rows of a write WITH SCHEMA EVOLUTION with the columns of a relation, in which a CHAR or VARCHAR is a
   * text with its length beside it. Of a table that has been given columns for these rows, it takes the columns as they
   * are, and would find that their texts have to be changed.
   */
  protected def columnsOf(columns: StructType): Array[Column] = SchemaInternals.columnsOf(
    if (access.isEvolved) SchemaInternals.withoutCharVarchar(columns) else columns)

  /** The same table, as a statement sees it that has given it columns. */
  def evolved: LakeTable = same(access.copy(isEvolved = true), facts)

  /** The same table, for the rows of a refresh. */
  def refreshed(refresh: Refresh): LakeTable = same(access.copy(refresh = Some(refresh)), facts)

  /** The same table, whose scans do not report by which values their tasks are apart. */
  def unkeyed: LakeTable = same(access.copy(isKeyed = false), facts)

  val identities: Seq[IdentityColumn] = IdentityColumns.of(facts.schema)

  private lazy val bloomFilters = facts.own.bloom.toSeq.flatMap(_.columns).flatMap(physical.path(_)).toSet

  /** Which Bloom filters new files have. */
  def bloomSettings: Option[BloomSettings] = facts.own.bloom.map(bloom =>
    BloomSettings(bloomFilters.toSeq.map(_.mkString(".")), bloom.ndv.toInt, bloom.fpp))

  /** Whether files that are written now have Bloom filters of the column. */
  def hasBloomFilter(column: Seq[String]): Boolean =
    bloomFilters.nonEmpty && physical.path(column).exists(bloomFilters)

  /** The same table for rows that are to be written to it. */
  def toBeFilled: LakeTable

  /** The same table for an UPDATE or MERGE. */
  def toBeChanged: LakeTable

  /** Whether values of some columns are made as rows are written. */
  def makesValues: Boolean = identities.nonEmpty || GeneratedColumns.exist(facts.schema)

  override def metadataColumns: Array[MetadataColumn] = physical.metadata.toSpark

  /** Spark holds the CHECKs among them against what it writes here. */
  override def constraints: Array[Constraint] = facts.constraints.toArray

  override def partitioning: Array[Transform] = {
    val clustering = Some(facts.clustering).filter(_.nonEmpty).map(ColumnInternals.clusterBy)
    (facts.partitionFields.map(_.toSpark) ++ clustering).toArray
  }

  /** The user's properties, and those by which Spark knows provider, comment and location; no others. */
  override def properties: JMap[String, String] = {
    val place = if (facts.ownLocation) TableCatalog.PROP_EXTERNAL else TableCatalog.PROP_IS_MANAGED_LOCATION
    val reserved = Map(TableCatalog.PROP_LOCATION -> Locations.shown(facts.location), place -> "true") ++
      facts.provider.map(TableCatalog.PROP_PROVIDER -> _) ++
      facts.comment.map(TableCatalog.PROP_COMMENT -> _)
    val table = access.ident.namespace.toSeq :+ access.ident.name
    new LineageProperties(facts.properties ++ reserved, access.options.getOrElse("warehouse", access.catalog), table)
  }

  override def capabilities: JSet[TableCapability] = (Set(
    TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
    TableCapability.MICRO_BATCH_READ, TableCapability.STREAMING_WRITE,
    TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC) ++ Tables.evolutionCapabilities ++
    GeneratedColumns.capability ++ SparkAbilities.mergesScans).asJava

  /** Refuses options that a read or a stream does not know; which ones are for streams only, a read says later. */
  private[lakelog] def refuseUnknownInRead(options: CaseInsensitiveStringMap): Unit

  /** Refuses options that a write of rows does not know. */
  private[lakelog] def refuseUnknownInWrite(options: CaseInsensitiveStringMap): Unit

  /** How large the table's files are together that a read with these options sees. */
  def bytes(options: CaseInsensitiveStringMap): Long

  /** Refuses writes of values that this session cannot compute, or is not to. */
  def refuseUncomputed(): Unit = {
    GeneratedColumns.refuseUnlessComputed(name, facts.schema)
    if (!Checks.areHeldBySpark) constraints.collectFirst { case check: Check => check }.foreach { check =>
      throw Failures.unsupported(
        s"The table $name has the constraint ${check.name}, a CHECK that Spark holds rows against from version 4.1 on: " +
          "write with Spark 4.1 or newer, or from Python.")
    }
    if (facts.own.computes) access.ask(wire.MayCompute(facts.reference))
  }

  /** Python refuses it too, but not before the rows are written. */
  protected def refuseTag(): Unit = facts.ref.filter(_.kind == CatalogNames.Tag).foreach { tag =>
    throw Failures.invalid(
      s"$name cannot be written to, as the tag ${tag.name} stays as it is: create a branch from it with ALTER TABLE … " +
        "CREATE BRANCH … AS OF VERSION.")
  }

  /** Refuses a statement that applies to a table with all its tags and branches only. */
  def refuseOnRef(statement: String): Unit = facts.ref.filter(_ => !isOfSession).foreach { ref =>
    throw Failures.unsupported(s"$name is a ${ref.kind}, which does not support $statement: name the table itself.")
  }

  /** A streaming query outlives the transaction in which its table was loaded. */
  private[lakelog] def refuseStreaming(): Unit =
    if (access.channel.isOutsideOfQuery) throw streamsInTransaction

  /** For a streaming query whose table was loaded in a transaction. */
  private[lakelog] def streamsInTransaction: Throwable = Failures.unsupported(
    s"A streaming query cannot be part of a transaction, but $name was loaded inside of one: start the query " +
      "before the transaction begins or when it has ended.")

  /** An option without effect must not be accepted: partitionOverwriteMode decides which rows survive. */
  private[lakelog] def refuseUnknown(options: CaseInsensitiveStringMap, what: String, known: Set[String]): Unit =
    options.asCaseSensitiveMap.asScala.collectFirst {
      case (key, value) if !known(key.toLowerCase(Locale.ROOT)) && !isSaid(key, value) => key
    }.foreach { key =>
      throw Failures.unsupported(
        s"lakelog does not know the $what option '$key': ${ForeignWords.instead(key)}.")
    }

  /** Whether an option says what is so anyway: by the place and the catalog, a reader or writer has found the table. */
  private def isSaid(option: String, value: String): Boolean = option.toLowerCase(Locale.ROOT) match {
    case "path" => Locations.isPath(access.ident) && value == access.ident.name
    case "catalog" => value == access.catalog
    case _ => false
  }

  /** Whether the rows that match are exactly the rows of some files: then nothing needs to be read or written. */
  override def canDeleteWhere(predicates: Array[Predicate]): Boolean =
    isPossible(wire.CanDelete(facts.reference, _), predicates)

  /** Whether it is known exactly which rows match: if files have others too, these stay. */
  def canOverwrite(predicates: Array[Predicate]): Boolean = isPossible(wire.CanOverwrite(facts.reference, _), predicates)

  private def isPossible(
      question: wire.Expression => wire.Request[wire.PossibleAnswer], predicates: Array[Predicate]): Boolean =
    predicates.forall(knows) && !predicates.exists(FileNames.areIn(_, physical.metadata)) &&
    access.ask(question(Predicates.toPython(predicates.toSeq))).possible

  /**
   * Whether a condition is on columns that the table has. What is there twice, as in `upper(s) BETWEEN 'A' AND 'B'`, Spark
   * computes once, as a column of a plan, and hands down what the statement asks of that one.
   */
  def knows(predicate: Predicate): Boolean = predicate.references.forall { column =>
    isOneOf(schema.fieldNames ++ metadataColumns.map(_.name), column.fieldNames.head)
  }

  /** Whether the table has a column of that name, as a statement may spell it. */
  def hasColumn(name: String): Boolean = isOneOf(schema.fieldNames, name)

  private def isOneOf(names: Array[String], name: String): Boolean =
    names.contains(name) || names.exists(SettingInternals.resolver(_, name))

  override def deleteWhere(predicates: Array[Predicate]): Unit =
    access.change(wire.DeleteRows(written.facts.reference, predicate = Predicates.toPython(predicates.toSeq)))

  /**
   * Whether a write WITH SCHEMA EVOLUTION shall change a column in that way; otherwise the values are cast to what the
   * column is. Spark asks for a narrower type too, if the data have one.
   */
  override def supportsColumnChange(change: TableChange.ColumnChange): Boolean = change match {
    // The values of a write do not say how a column is to be compared.
    case change: TableChange.UpdateColumnType
        if SchemaInternals.isCollated(change.newDataType) ||
        physical.isCollated(change.fieldNames.toSeq) => false
    case _: TableChange.UpdateColumnType =>
      access.ask(wire.CanChange(facts.reference, Requests.tableChange(change))).possible
    case _ => true
  }

  override def truncateTable(): Boolean = {
    if (!access.channel.postponesTruncation(access.catalog, access.ident))
      access.change(wire.TruncateTable(written.facts.reference))
    true
  }

  /**
   * Two of the same version are equal: Spark finds what it has cached of one when it has loaded the other. A table
   * that was loaded in a transaction equals none that was loaded outside of it or in another one: Spark must read it itself.
   * Nor is one without keys the same as one with them: a rule would change nothing then.
   */
  override def equals(other: Any): Boolean = other match {
    case that: LakeTable =>
      access.catalog == that.access.catalog && access.ident == that.access.ident && facts == that.facts &&
      access.channel.transactionId == that.access.channel.transactionId && access.isKeyed == that.access.isKeyed
    case _ => false
  }

  override def hashCode(): Int = (access.catalog, access.ident, facts.ownId, facts.version).hashCode

  override def toString: String = name
}

/**
 * A table whose identity columns may be left out, or NULL, as rows are to be written to it.
 *
 * If it `changesRows`, so may its generated columns. Spark learns of no expression then, as it would refuse the
 * statement: see `MadeValues`.
 */
private[lakelog] trait TableToBeFilled extends LakeTable {
  def changesRows: Boolean

  /** The same table for rows that are read. */
  def toBeRead: LakeTable
}
