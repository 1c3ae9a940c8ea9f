package org.apache.spark.sql.lakelog.expressions

import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.time.LocalDate

import org.apache.spark.sql.connector.expressions.{Expression, Expressions, FieldReference, LiteralValue, Transform}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.seam.TimeType
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/**
 * A partition transform by lakelog's name (identity, bucket, truncate, year, month, day, hour) and its arguments.
 *
 * The values are those of Iceberg's functions, bit for bit, as Python computes them too. They are computed from and
 * in Spark's internal representation: days and microseconds since 1970, nanoseconds of a day, UTF8String, Decimal.
 */
private[lakelog] final case class PartitionTransform(name: String, arguments: Seq[Int]) {

  private def argument: Int = arguments.head

  def isIdentity: Boolean = name == "identity"

  /** The transform as Spark's own, of a column's path. */
  def toSpark(column: Seq[String]): Transform = {
    val reference = FieldReference(column)
    name match {
      case "identity" => Expressions.identity(reference.describe)
      case "bucket" => Expressions.bucket(argument, reference.describe)
      case "truncate" => Expressions.apply("truncate", LiteralValue(argument, IntegerType), reference)
      case "year" => Expressions.years(reference.describe)
      case "month" => Expressions.months(reference.describe)
      case "day" => Expressions.days(reference.describe)
      case "hour" => Expressions.hours(reference.describe)
    }
  }

  /** What rows are clustered and sorted by: the column itself for identity, else the transform. */
  def toExpression(column: Seq[String]): Expression = if (isIdentity) FieldReference(column) else toSpark(column)

  def resultType(source: DataType): DataType = name match {
    case "identity" | "truncate" => source
    case "day" => DateType
    case _ => IntegerType
  }

  /** The transform as a function of one value that is not null. Built once per column, called per row. */
  def function(source: DataType): Any => Any = name match {
    case "identity" => identity
    case "bucket" =>
      val hash = PartitionTransform.hash(source)
      value => (hash(value) & Int.MaxValue) % argument
    case "truncate" => PartitionTransform.truncate(source, argument)
    case "year" => PartitionTransform.day(source).andThen(day => LocalDate.ofEpochDay(day).getYear - 1970)
    case "month" => PartitionTransform.day(source).andThen { day =>
        val date = LocalDate.ofEpochDay(day)
        (date.getYear - 1970) * 12 + date.getMonthValue - 1
      }
    case "day" => PartitionTransform.day(source).andThen(_.toInt)
    case "hour" => value => Math.floorDiv(value.asInstanceOf[Long], PartitionTransform.MicrosPerHour).toInt
  }
}

private[lakelog] object PartitionTransform {

  private val MicrosPerHour = 3600L * 1000 * 1000
  private val MicrosPerDay = 24 * MicrosPerHour
  private val NanosPerMicro = 1000L

  /** Whether the transform takes a column of that type. */
  def accepts(name: String, source: DataType): Boolean = (name, source) match {
    case _ if SchemaInternals.isCollated(source) => false
    case ("bucket" | "truncate", ByteType | ShortType | IntegerType | LongType) => true
    case ("bucket" | "truncate", _: DecimalType | _: StringType | BinaryType) => true
    case ("bucket", DateType | TimestampType | TimestampNTZType | _: TimeType) => true
    case ("year" | "month" | "day", DateType | TimestampType | TimestampNTZType) => true
    case ("hour", TimestampType | TimestampNTZType) => true
    case _ => false
  }

  private def day(source: DataType): Any => Long = source match {
    case DateType => value => value.asInstanceOf[Int].toLong
    case _ => value => Math.floorDiv(value.asInstanceOf[Long], MicrosPerDay)
  }

  private def hash(source: DataType): Any => Int = source match {
    case ByteType => value => hashLong(value.asInstanceOf[Byte].toLong)
    case ShortType => value => hashLong(value.asInstanceOf[Short].toLong)
    case IntegerType | DateType => value => hashLong(value.asInstanceOf[Int].toLong)
    case LongType | TimestampType | TimestampNTZType => value => hashLong(value.asInstanceOf[Long])
    case _: TimeType => value => hashLong(Math.floorDiv(value.asInstanceOf[Long], NanosPerMicro))
    case _: DecimalType => value => hashBytes(value.asInstanceOf[Decimal].toJavaBigDecimal.unscaledValue.toByteArray)
    case BinaryType => value => hashBytes(value.asInstanceOf[Array[Byte]])
    case _ => value =>
        val text = value.asInstanceOf[UTF8String]
        Murmur3_x86_32.hashUnsafeBytes2(text.getBaseObject, text.getBaseOffset, text.numBytes, 0)
  }

  private def hashLong(value: Long): Int = Murmur3_x86_32.hashLong(value, 0)

  private def hashBytes(bytes: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0)

  private def truncate(source: DataType, width: Int): Any => Any = source match {
    case ByteType => value => { val v = value.asInstanceOf[Byte].toInt; (v - Math.floorMod(v, width)).toByte }
    case ShortType => value => { val v = value.asInstanceOf[Short].toInt; (v - Math.floorMod(v, width)).toShort }
    case IntegerType => value => { val v = value.asInstanceOf[Int]; v - Math.floorMod(v, width) }
    case LongType => value => { val v = value.asInstanceOf[Long]; v - Math.floorMod(v, width.toLong) }
    case decimal: DecimalType => value =>
        val unscaled = value.asInstanceOf[Decimal].toJavaBigDecimal.unscaledValue
        val step = BigInteger.valueOf(width.toLong)
        val cut = new JBigDecimal(unscaled.subtract(unscaled.mod(step)), decimal.scale)
        Decimal(BigDecimal(cut), decimal.precision, decimal.scale)
    case BinaryType => value => value.asInstanceOf[Array[Byte]].take(width)
    case _ => value => value.asInstanceOf[UTF8String].substring(0, width)
  }
}
