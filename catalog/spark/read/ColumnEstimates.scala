package org.apache.spark.sql.lakelog.read

import java.util.{Map => JMap, Optional, OptionalLong}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.lakelog.files.Constants
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.table.TableFacts
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._

/** What `compute_statistics` found of columns, for Spark's cost-based optimizer. */
private[lakelog] object ColumnEstimates {

  /** The estimates of the columns that are read. There may be fewer rows by now than when they were computed. */
  def of(facts: TableFacts, required: StructType, rows: Long): JMap[NamedReference, ColumnStatistics] = {
    val schema = SchemaInternals.withoutCharVarchar(required)
    facts.estimates.flatMap { estimate =>
      val name = estimate.column
      schema.fields.find(_.name == name).map(field =>
        SchemaInternals.reference(Seq(name)) -> statistics(estimate, field.dataType, rows))
    }.toMap.asJava
  }

  private def statistics(estimate: wire.OptimizerEstimate, dataType: DataType, rows: Long): ColumnStatistics =
    new ColumnStatistics {
      override def distinctCount(): OptionalLong =
        if (isEstimated) whole(estimate.distinct, rows) else OptionalLong.empty()
      override def nullCount(): OptionalLong = whole(estimate.nulls, rows)
      override def avgLen(): OptionalLong = whole(estimate.averageBytes, Long.MaxValue)
      override def maxLen(): OptionalLong = whole(estimate.mostBytes, Long.MaxValue)
      override def min(): Optional[Object] = bound(estimate.min)
      override def max(): Optional[Object] = bound(estimate.max)

      /**
       * Of other types, Spark expects no rows without bounds, and fails over bounds; it also fails if it reckons with
       * a width between bounds that is no finite number.
       */
      private val isEstimated = dataType match {
        case _ if SchemaInternals.isCollated(dataType) => false
        case FloatType | DoubleType => isWidthFinite
        case _: NumericType | DateType | TimestampType | BooleanType | _: StringType | BinaryType => true
        case _ => false
      }

      private def whole(known: Option[Long], limit: Long): OptionalLong =
        known.fold(OptionalLong.empty())(number => OptionalLong.of(math.min(number, limit)))

      private def bound(known: Option[wire.Scalar]): Optional[Object] =
        if (isEstimated) Optional.ofNullable(value(known)) else Optional.empty()

      private def value(known: Option[wire.Scalar]): Object =
        Constants.value(known.getOrElse(wire.Scalar.Null), estimate.`type`, dataType).asInstanceOf[Object]

      private def isWidthFinite: Boolean = (value(estimate.min), value(estimate.max)) match {
        case (min: Number, max: Number) => java.lang.Double.isFinite(max.doubleValue - min.doubleValue)
        case _ => true
      }
    }
}
