package org.apache.spark.sql.lakelog.read

import java.util.{Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Column, MetadataColumn, SupportsMetadataColumns, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.NewerTable
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, LongType, StructType, TimestampType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A table that Python makes when it is read, as Arrow; see `lakelog.spark.system_tables`. */
private[lakelog] abstract class SystemTable(override val schema: StructType) extends SupportsRead with NewerTable {

  override def columns: Array[Column] = SchemaInternals.columnsOf(schema)

  override def capabilities: JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    options.keySet.asScala.find(key => !SystemTable.ObeyedOptions(key.toLowerCase(java.util.Locale.ROOT))).foreach {
      key =>
        throw Failures.unsupported(s"$name takes no read options: leave out '$key'.")
    }
    new SystemScanBuilder(this, rows())
  }

  /** What one scan reads. */
  protected def rows(): SystemRows
}

private[lakelog] object SystemTable {

  /** Spark has obeyed these before it asks for a scan. */
  private val ObeyedOptions = Set("versionasof", "timestampasof")
}

/** Gives these columns of all rows whose time is within the bounds, and perhaps of others, as Arrow streams. */
private[lakelog] trait SystemRows {
  def read(columns: Seq[String], since: Option[Long], until: Option[Long]): Seq[Array[Byte]]
}

/** A table of the namespace `system`, such as the audit. */
private[lakelog] final class TableOfSystem(catalog: String, declared: wire.DeclaredTable, channel: Channel,
    failures: Failures)
  extends SystemTable(declared.schema.schema) {

  private val simpleName = declared.name

  override def name: String = SchemaInternals.quoted(Seq(catalog, CatalogNames.SystemNamespace, simpleName))

  override protected def rows(): SystemRows = (columns, since, until) =>
    if (since.zip(until).exists { case (first, last) => first > last }) Nil
    else failures.procedure {
      SystemStreams.of(channel.withBytes(wire.ReadSystemTable(simpleName, columns, since, until)))
    }
}

/** Metadata of one version of a table, such as its files; see `lakelog.catalog.metadata_tables`. */
private[lakelog] final class MetadataTable(table: LakeTable, declared: wire.MetadataTable)
  extends SystemTable(declared.schema.schema) with SupportsMetadataColumns {

  private val kind = declared.name

  override def name: String = s"${table.name}.$kind"

  override def version: String = table.version

  /** Other names of columns, which `SELECT *` leaves out. */
  override def metadataColumns(): Array[MetadataColumn] =
    (if (MetadataTable.OfVersions(kind)) Array[MetadataColumn](MetadataTable.SnapshotId) else Array.empty) ++
      (if (kind == "history") Array[MetadataColumn](MetadataTable.CommittedAt) else Array.empty)

  /** It is read of the version that the statement reads of the table itself, should it do so. */
  override protected def rows(): SystemRows = {
    val together = ReadTogether.joined(table)
    (columns, _, _) =>
      table.access.failures.table(table.access.ident) {
        val request = wire.ReadMetadataTable(table.facts.referenceOf(together.version(table)), kind, columns)
        SystemStreams.of(table.access.channel.withBytes(request))
      }
  }
}

private object MetadataTable {

  /** Those that have a row for each version, tag or branch. */
  val OfVersions = Set("history", "refs", "snapshots")

  object SnapshotId extends MetadataColumn {
    override def name: String = "snapshot_id"
    override def dataType: DataType = LongType
    override def isNullable: Boolean = false
    override def comment: String = "the version, by Iceberg's word"
  }

  /** The name that `snapshots`, `log` and the audit have for the time of a commit, which Iceberg's `history` has not. */
  object CommittedAt extends MetadataColumn {
    override def name: String = "committed_at"
    override def dataType: DataType = TimestampType
    override def isNullable: Boolean = false
    override def comment: String = "made_current_at, by the name that it has in other tables"
  }
}

/** Finds out which columns and times are wanted. All filters are given back to Spark. */
private final class SystemScanBuilder(table: SystemTable, rows: SystemRows)
  extends ScanBuilder with SupportsPushDownV2Filters with SupportsPushDownRequiredColumns {

  private var required = table.schema
  private var since: Option[Long] = None
  private var until: Option[Long] = None

  /** Whole columns; and one at least, since rows of none cannot be counted. */
  override def pruneColumns(columns: StructType): Unit = {
    val own = table.schema.fieldNames.toSet
    val wanted = table.schema.fields.filter(field => columns.fieldNames.contains(field.name)) ++
      columns.fields.filterNot(field => own(field.name))
    required = StructType(if (wanted.isEmpty) table.schema.fields.take(1) else wanted)
  }

  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    predicates.foreach { predicate =>
      predicate.children match {
        case Array(column: NamedReference, value: Literal[_])
            if isTime(column) && value.dataType == TimestampType && value.value != null =>
          val micros = value.value.asInstanceOf[Long]
          if (Set("=", ">", ">=")(predicate.name)) since = Some(since.fold(micros)(math.max(_, micros)))
          if (Set("=", "<", "<=")(predicate.name)) until = Some(until.fold(micros)(math.min(_, micros)))
        case _ =>
      }
    }
    predicates
  }

  override def pushedPredicates(): Array[Predicate] = Array.empty

  private def isTime(column: NamedReference): Boolean = column.fieldNames.toSeq == Seq("committed_at")

  override def build(): Scan =
    new ArrowScan(table.name, required, () => rows.read(required.fieldNames.toSeq, since, until))
}
