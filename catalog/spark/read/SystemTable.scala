package org.apache.spark.sql.lakelog

import java.util.{Set => JSet}

import scala.jdk.CollectionConverters._

import org.json4s.JsonAST.{JInt, JNull, JObject, JString}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{Column, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder, SupportsPushDownV2Filters}
import org.apache.spark.sql.types.{StructType, TimestampType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A table that Python makes when it is read, such as the audit; see `lakelog.spark.system_tables`. */
private[lakelog] final class SystemTable(catalog: String, declared: JObject, channel: Channel, failures: Failures)
  extends SupportsRead {

  private val simpleName = Json.string(declared, "name")

  private val fields = StructType(Json.objects(declared, "columns").map { column =>
    StructType.fromDDL(s"`${Json.string(column, "name")}` ${Json.string(column, "type")}").head
      .copy(nullable = Json.bool(column, "nullable"))
  })

  override def name: String = SparkInternals.quoted(Seq(catalog, LakeCatalog.SystemNamespace, simpleName))

  override def schema: StructType = fields

  override def columns: Array[Column] = SparkInternals.columnsOf(fields)

  override def capabilities: JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    options.keySet.asScala.headOption.foreach { key =>
      throw Failures.unsupported(s"$name takes no read options, so it does not know '$key': leave it out.")
    }
    new SystemScanBuilder(this)
  }

  /** The rows whose time is within these bounds, and possibly others. */
  def rows(since: Option[Long], until: Option[Long]): Array[InternalRow] =
    if (since.zip(until).exists { case (first, last) => first > last }) Array.empty else between(since, until)

  private def between(since: Option[Long], until: Option[Long]): Array[InternalRow] = failures.procedure {
    val params = Json.obj(
      "name" -> JString(simpleName),
      "since_us" -> since.map(JInt(_)).getOrElse(JNull), "until_us" -> until.map(JInt(_)).getOrElse(JNull))
    SparkInternals.rows(channel.ask("read_system_table", params).body, fields)
  }
}

/** Finds out which times are wanted. All filters are given back to Spark. */
private final class SystemScanBuilder(table: SystemTable) extends ScanBuilder with SupportsPushDownV2Filters {

  private var since: Option[Long] = None
  private var until: Option[Long] = None

  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    predicates.foreach { predicate =>
      predicate.children match {
        case Array(column: NamedReference, value: Literal[_])
            if column.fieldNames.toSeq == Seq("time") && value.dataType == TimestampType && value.value != null =>
          val micros = value.value.asInstanceOf[Long]
          if (Set("=", ">", ">=")(predicate.name)) since = Some(since.fold(micros)(math.max(_, micros)))
          if (Set("=", "<", "<=")(predicate.name)) until = Some(until.fold(micros)(math.min(_, micros)))
        case _ =>
      }
    }
    predicates
  }

  override def pushedPredicates(): Array[Predicate] = Array.empty

  override def build(): Scan = new LocalScan {
    private lazy val found = table.rows(since, until)
    override def readSchema(): StructType = table.schema
    override def rows(): Array[InternalRow] = found
    override def description(): String = table.name
  }
}
