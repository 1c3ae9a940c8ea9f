package org.apache.spark.sql.lakelog.files

import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.jdk.CollectionConverters._

import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.io.api.Binary

import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.seam.TimeType
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Column statistics of a file from its footer, in the form of the table format: nulls, and bounds if they are safe.
 *
 * Bounds say that no value lies outside. So they are left out if NaN occurs, which is greater than all and in no
 * bound, and if texts are not valid UTF-8, which JSON cannot hold; zero is taken with the sign that makes the range
 * larger; long texts are cut, the upper bound upwards (and left out if there is nothing above).
 */
private[lakelog] object FooterStatistics {
  import wire.Scalar

  private val KeptCharacters = 32

  /** By column id. Columns whose row groups do not all have statistics are left out. */
  def of(footer: ParquetMetadata, leaves: Map[Seq[String], (Long, DataType)]): Map[Long, wire.ColumnStats] = {
    val chunks = footer.getBlocks.asScala.toSeq.flatMap(_.getColumns.asScala).groupBy(_.getPath.toArray.toSeq)
    chunks.flatMap { case (path, parts) =>
      leaves.get(path).flatMap { case (id, dataType) =>
        of(parts.map(_.getStatistics), parts.map(_.getValueCount).sum, dataType).map(id -> _)
      }
    }
  }

  private def of(parts: Seq[Statistics[_]], values: Long, dataType: DataType): Option[wire.ColumnStats] =
    if (parts.exists(p => p == null || !p.isNumNullsSet)) None
    else {
      val nulls = parts.map(_.getNumNulls).sum
      val withValues = parts.filterNot(p => p.isNumNullsSet && !p.hasNonNullValue && p.getNumNulls > 0)
      val bounds =
        if (nulls == values || withValues.isEmpty || withValues.exists(!_.hasNonNullValue)) None
        else boundsOf(withValues, dataType)
      Some(wire.ColumnStats(Some(nulls), bounds.map(_._1), bounds.flatMap(_._2)))
    }

  private def boundsOf(parts: Seq[Statistics[_]], dataType: DataType): Option[(Scalar, Option[Scalar])] = {
    val lows = parts.map(_.genericGetMin.asInstanceOf[Any])
    val highs = parts.map(_.genericGetMax.asInstanceOf[Any])
    dataType match {
      case BooleanType =>
        Some((Scalar.Flag(lows.forall(_ == true)), Some(Scalar.Flag(highs.contains(true)))))
      case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType |
          _: DayTimeIntervalType | _: YearMonthIntervalType | _: TimeType =>
        Some((Scalar.whole(lows.map(whole).min), Some(Scalar.whole(highs.map(whole).max))))
      case FloatType | DoubleType => realBounds(lows.map(real), highs.map(real))
      case decimal: DecimalType =>
        Some((text(lows.map(decimalOf(_, decimal)).min), Some(text(highs.map(decimalOf(_, decimal)).max))))
      // In the order of its collation they are others.
      case _ if SchemaInternals.isCollated(dataType) => None
      case _: StringType | _: CharType | _: VarcharType => textBounds(lows.map(bytes), highs.map(bytes))
      case BinaryType => binaryBounds(lows.map(bytes), highs.map(bytes))
      case _ => None
    }
  }

  private def whole(value: Any): Long = value match {
    case v: Integer => v.longValue
    case v: java.lang.Long => v.longValue
    case other => throw new IllegalStateException(s"Parquet has the whole number $other as a ${other.getClass}")
  }

  private def real(value: Any): Double = value match {
    case v: java.lang.Float => v.doubleValue
    case v: java.lang.Double => v.doubleValue
    case other => throw new IllegalStateException(s"Parquet has the real number $other as a ${other.getClass}")
  }

  private def realBounds(lows: Seq[Double], highs: Seq[Double]): Option[(Scalar, Option[Scalar])] =
    if ((lows ++ highs).exists(_.isNaN)) None
    else {
      val (low, high) = (lows.min, highs.max)
      Some((
          Predicates.encode(if (low == 0.0) -0.0 else low, DoubleType),
          Some(Predicates.encode(if (high == 0.0) 0.0 else high, DoubleType))))
    }

  private def decimalOf(value: Any, dataType: DecimalType): JBigDecimal = value match {
    case v: Binary => new JBigDecimal(new BigInteger(v.getBytes), dataType.scale)
    case v => JBigDecimal.valueOf(whole(v), dataType.scale)
  }

  private def text(value: JBigDecimal): Scalar = Scalar.Text(value.toPlainString)

  private def bytes(value: Any): Array[Byte] = value.asInstanceOf[Binary].getBytes

  private def least(values: Seq[Array[Byte]]): Array[Byte] = values.min(UnsignedOrder)

  private def greatest(values: Seq[Array[Byte]]): Array[Byte] = values.max(UnsignedOrder)

  private val UnsignedOrder: Ordering[Array[Byte]] = (a, b) => java.util.Arrays.compareUnsigned(a, b)

  private def textBounds(lows: Seq[Array[Byte]], highs: Seq[Array[Byte]]): Option[(Scalar, Option[Scalar])] = {
    val (lowest, highest) = (least(lows), greatest(highs))
    if (!UTF8String.fromBytes(lowest).isValid || !UTF8String.fromBytes(highest).isValid) None
    else {
      val low = new String(lowest, UTF_8).codePoints.limit(KeptCharacters.toLong).toArray
      val high = new String(highest, UTF_8).codePoints.toArray
      Some((Scalar.Text(new String(low, 0, low.length)), upperText(high).map(Scalar.Text(_))))
    }
  }

  /** A text of at most the kept length that is not less than `points`; None if there is none. */
  private def upperText(points: Array[Int]): Option[String] =
    if (points.length <= KeptCharacters) Some(new String(points, 0, points.length))
    else {
      val kept = points.take(KeptCharacters)
      kept.lastIndexWhere(_ < Character.MAX_CODE_POINT) match {
        case -1 => None
        case last =>
          val next = kept(last) + 1
          // Surrogates are no characters: what follows the last one before them is the first one after them.
          kept(last) = if (next == Character.MIN_SURROGATE) Character.MAX_SURROGATE + 1 else next
          Some(new String(kept, 0, last + 1))
      }
    }

  private def binaryBounds(lows: Seq[Array[Byte]], highs: Seq[Array[Byte]]): Option[(Scalar, Option[Scalar])] =
    Some((base64(least(lows).take(KeptCharacters)), upperBytes(greatest(highs)).map(base64)))

  private def upperBytes(value: Array[Byte]): Option[Array[Byte]] =
    if (value.length <= KeptCharacters) Some(value)
    else {
      val kept = value.take(KeptCharacters)
      kept.lastIndexWhere(_ != -1) match {
        case -1 => None
        case last =>
          kept(last) = (kept(last) + 1).toByte
          Some(kept.take(last + 1))
      }
    }

  private def base64(value: Array[Byte]): Scalar = Scalar.Text(Base64.getEncoder.encodeToString(value))
}
