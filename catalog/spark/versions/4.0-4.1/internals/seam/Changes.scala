package org.apache.spark.sql.lakelog.internals.seam

import java.util.{Locale, Optional, Set => JSet}

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.connector.catalog.{Column, Identifier, SupportsRead, TableCapability, TableCatalog}
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{StringType, TimestampType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The changes of a table between versions or times. */
private[lakelog] trait Changelog {
  def name(): String
  def columns(): Array[Column]
  def containsCarryoverRows(): Boolean
  def containsIntermediateChanges(): Boolean
  def representsUpdateAsDeleteAndInsert(): Boolean
  def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder
  def rowId(): Array[NamedReference]
  def rowVersion(): NamedReference
}

/** From where to where changes are read. */
sealed trait ChangelogRange {
  def startingBoundInclusive: Boolean
  def endingBoundInclusive: Boolean
}

private[lakelog] final case class VersionRange(
    startingVersion: String, endingVersion: Optional[String], startingBoundInclusive: Boolean,
    endingBoundInclusive: Boolean) extends ChangelogRange

/** Times are microseconds since 1970. */
private[lakelog] final case class TimestampRange(
    startingTimestamp: Long, endingTimestamp: Optional[java.lang.Long], startingBoundInclusive: Boolean,
    endingBoundInclusive: Boolean) extends ChangelogRange

private[lakelog] case object UnboundedRange extends ChangelogRange {
  override def startingBoundInclusive: Boolean = true
  override def endingBoundInclusive: Boolean = true
}

/** The ways in which changes of a row are left out. */
object DeduplicationMode extends Enumeration {
  val NONE: Value = Value("none")
  val DROP_CARRYOVERS: Value = Value("dropCarryovers")
  val NET_CHANGES: Value = Value("netChanges")
}

/** Which changes of a table are asked for, and how. */
final case class ChangelogContext(
    range: ChangelogRange, deduplicationMode: DeduplicationMode.Value, computeUpdates: Boolean)

/** Changes as a table that Spark reads. */
private[lakelog] final class ChangelogTable(val changelog: Changelog) extends NewerTable with SupportsRead {
  override def name: String = changelog.name()
  override def columns: Array[Column] = changelog.columns()
  override def capabilities: JSet[TableCapability] =
    JSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = changelog.newScanBuilder(options)

  override def equals(other: Any): Boolean = other match {
    case that: ChangelogTable => changelog == that.changelog
    case _ => false
  }
  override def hashCode: Int = changelog.hashCode
}

/** The changes of the table of that name, before it is found. */
private[lakelog] final case class RelationChanges(named: UnresolvedRelation, asked: ChangelogContext) extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/** Changes of tables in Spark's plans. */
private[lakelog] object Changes {

  /** Whether Spark itself leaves out rows that were only copied, and finds those that were updated. */
  val areComparedBySpark: Boolean = false

  /** How users read changes into a DataFrame, and as a stream. */
  val (read, readStream) =
    ("spark.read.option(\"changes\", \"true\").table", "spark.readStream.option(\"changes\", \"true\").table")

  /** The changes of the table of that name that options describe. */
  def asked(name: UnresolvedRelation, options: CaseInsensitiveStringMap, timeZone: String): LogicalPlan =
    RelationChanges(name, ChangesAsked(options, timeZone))

  /** Changes as they are stored, for those that were asked for. */
  def raw(asked: ChangelogContext): ChangelogContext = ChangelogContext(asked.range, DeduplicationMode.NONE, false)

  /** The changes of a table that a statement names. */
  object Named {
    def unapply(plan: LogicalPlan): Option[(UnresolvedRelation, ChangelogContext)] = plan match {
      case RelationChanges(named, asked) => Some(named -> asked)
      case _ => None
    }

    def apply(named: UnresolvedRelation, asked: ChangelogContext): LogicalPlan = RelationChanges(named, asked)
  }

  /** The changes that a leaf of a plan reads. */
  object Read {
    def unapply(plan: LogicalPlan): Option[Changelog] = (plan match {
      case relation: StreamingRelationV2 => Some(relation.table)
      case relation: DataSourceV2Relation => Some(relation.table)
      case _ => None
    }).collect { case table: ChangelogTable => table.changelog }
  }

  /** Updates cannot be found among changes with rows that were only copied. */
  def refuseCopies(name: String): Nothing = throw Errors.analysis(
    s"Updates of $name are found only without rows that were merely copied: leave deduplicationMode out, or set it to " +
      s"${DeduplicationMode.DROP_CARRYOVERS} or ${DeduplicationMode.NET_CHANGES}.")

  /** The changes that another catalog has of its table. */
  def load(
      catalog: TableCatalog, ident: Identifier, context: ChangelogContext,
      options: CaseInsensitiveStringMap): Changelog = catalog match {
    case changing: NewerTableCatalog => changing.loadChangelog(ident, context, options)
    case _ =>
      throw new UnsupportedOperationException(s"The catalog ${catalog.name} has no changes of its table ${ident.name}.")
  }
}

/** Reads from options which changes are asked for, as newer Sparks do. */
private[lakelog] object ChangesAsked {

  def apply(options: CaseInsensitiveStringMap, timeZone: String): ChangelogContext = {
    def text(name: String): Option[String] = Option(options.get(name))
    def yes(name: String, otherwise: Boolean): Boolean = options.getBoolean(name, otherwise)
    val (withStart, withEnd) = (yes("startingBoundInclusive", true), yes("endingBoundInclusive", true))
    val versions = text("startingVersion").isDefined || text("endingVersion").isDefined
    val times = text("startingTimestamp").isDefined || text("endingTimestamp").isDefined
    val range = if (versions && times) throw Errors.analysis(
      "Changes are between versions or between times: give options of one kind.")
    else if (versions) ChangesAsked.versions(
      text("startingVersion").getOrElse(throw Errors.analysis("endingVersion needs startingVersion: give both.")),
      text("endingVersion"), withStart, withEnd)
    else if (times) ChangesAsked.times(
      time(
        text("startingTimestamp").getOrElse(
          throw Errors.analysis("endingTimestamp needs startingTimestamp: give both.")), timeZone),
      text("endingTimestamp").map(time(_, timeZone)), withStart, withEnd)
    else UnboundedRange
    in(range, options)
  }

  def versions(first: String, last: Option[String], withFirst: Boolean, withLast: Boolean): ChangelogRange =
    VersionRange(first, optional(last), withFirst, withLast)

  /** Times are microseconds since 1970. */
  def times(first: Long, last: Option[Long], withFirst: Boolean, withLast: Boolean): ChangelogRange =
    TimestampRange(first, optional(last.map(Long.box)), withFirst, withLast)

  /** The changes in a range, in the way that options say. */
  def in(range: ChangelogRange, options: CaseInsensitiveStringMap): ChangelogContext = ChangelogContext(
    range, mode(Option(options.get("deduplicationMode"))), options.getBoolean("computeUpdates", false))

  private def mode(stated: Option[String]): DeduplicationMode.Value =
    stated.fold(DeduplicationMode.DROP_CARRYOVERS) { name =>
      DeduplicationMode.values.find(_.toString.toLowerCase(Locale.ROOT) == name.toLowerCase(Locale.ROOT)).getOrElse(
        throw Errors.analysis(
          s"deduplicationMode is '$name': give one of ${DeduplicationMode.values.mkString(", ")}."))
    }

  private def optional[T](value: Option[T]): Optional[T] = value.fold(Optional.empty[T])(Optional.of(_))

  private def time(text: String, timeZone: String): Long =
    Cast(Literal.create(text, StringType), TimestampType, Some(timeZone)).eval() match {
      case micros: Long => micros
      case _ => throw QueryCompilationErrors.invalidTimestampExprForTimeTravel(
          "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", Literal.create(text, StringType))
    }
}
