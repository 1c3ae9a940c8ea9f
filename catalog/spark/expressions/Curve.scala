package org.apache.spark.sql.lakelog.expressions

import java.math.{BigDecimal => JBigDecimal}
import java.util.{Arrays, Base64}

import org.apache.spark.sql.lakelog.internals.seam.TimeType
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The curve along which the rows of a clustered table lie: Hilbert's, over ranks by boundaries, bit for bit as
 * `lakelog.catalog.core.schema.curve` computes it. A value's rank is how many boundaries are not above it; NULL has the
 * lowest, NaN the highest.
 */
private[lakelog] final class Curve(facts: wire.CurveFacts) extends Serializable {

  val generation: Long = facts.generation
  val columns: Seq[Seq[String]] = facts.columns.map(_.column)

  private val bits = facts.bits.toInt

  /** What computes the places of rows, whose columns have these types in Spark. */
  def placesOf(types: Seq[DataType]): CurvePlaces = new CurvePlaces(
    bits, facts.columns.zip(types).map { case (column, dataType) => ColumnRanks.of(dataType, column.bounds) }.toArray)

  /** Two of one generation are the same: Spark compares what it sorts by. */
  override def equals(other: Any): Boolean = other match {
    case curve: Curve => curve.generation == generation && curve.columns == columns
    case _ => false
  }
  override def hashCode: Int = (generation, columns).hashCode
  override def toString: String = s"curve $generation"
}

private[lakelog] final class CurvePlaces(bits: Int, ranks: Array[ColumnRanks]) {

  private val axes = new Array[Int](ranks.length)
  private val most = (1 << bits) - 1

  def columns: Int = ranks.length

  /** Notes the value of a column, in Spark's internal representation. */
  def put(column: Int, value: Any): Unit = {
    val of = ranks(column)
    axes(column) =
      if (value == null || of.count == 0) 0 else (of.notAbove(value).toLong * most / of.count).toInt
  }

  /** The place of the row whose values were put. By J. Skilling, Programming the Hilbert curve (2004). */
  def place: Long = if (axes.length == 1) axes(0).toLong else CurvePlaces.hilbert(axes, bits)
}

private[lakelog] object CurvePlaces {

  /** Of coordinates, which are overwritten. */
  def hilbert(x: Array[Int], bits: Int): Long = {
    val last = x.length - 1
    var q = 1 << (bits - 1)
    while (q > 1) {
      val p = q - 1
      var i = 0
      while (i <= last) {
        if ((x(i) & q) != 0) x(0) ^= p
        else {
          val t = (x(0) ^ x(i)) & p
          x(0) ^= t
          x(i) ^= t
        }
        i += 1
      }
      q >>= 1
    }
    var i = 1
    while (i <= last) {
      x(i) ^= x(i - 1)
      i += 1
    }
    var t = 0
    q = 1 << (bits - 1)
    while (q > 1) {
      if ((x(last) & q) != 0) t ^= q - 1
      q >>= 1
    }
    var place = 0L
    var bit = bits - 1
    while (bit >= 0) {
      i = 0
      while (i <= last) {
        place = (place << 1) | (((x(i) ^ t) >> bit) & 1)
        i += 1
      }
      bit -= 1
    }
    place
  }
}

/** The boundaries of a column, as many as `count`. */
private[lakelog] abstract class ColumnRanks(val count: Int) {

  /** How many are not above a value that is not null. */
  def notAbove(value: Any): Int

  /** The same, where `isAbove` says it of each boundary. */
  protected def search(isAbove: Int => Boolean): Int = {
    var (low, high) = (0, count)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (isAbove(middle)) high = middle else low = middle + 1
    }
    low
  }
}

private[lakelog] object ColumnRanks {
  import wire.Scalar

  private val NanosPerMicro = 1000L

  def of(dataType: DataType, bounds: Seq[Scalar]): ColumnRanks = dataType match {
    case BooleanType => whole(bounds, value => if (value.asInstanceOf[Boolean]) 1L else 0L)
    case _: TimeType => whole(bounds, value => Math.floorDiv(value.asInstanceOf[Long], NanosPerMicro))
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType |
        _: YearMonthIntervalType | _: DayTimeIntervalType => whole(bounds, value => value.asInstanceOf[Number].longValue)
    case FloatType | DoubleType => real(bounds)
    case _: DecimalType =>
      val limits = bounds.map(bound => new JBigDecimal(text(bound))).toArray
      new ColumnRanks(limits.length) {
        override def notAbove(value: Any): Int = {
          val number = value.asInstanceOf[Decimal].toJavaBigDecimal
          search(limits(_).compareTo(number) > 0)
        }
      }
    case BinaryType =>
      val limits = bounds.map(bound => Base64.getDecoder.decode(text(bound))).toArray
      new ColumnRanks(limits.length) {
        override def notAbove(value: Any): Int = {
          val bytes = value.asInstanceOf[Array[Byte]]
          search(at => Arrays.compareUnsigned(limits(at), bytes) > 0)
        }
      }
    case _: StringType | _: CharType | _: VarcharType =>
      val limits = bounds.map(bound => UTF8String.fromString(text(bound))).toArray
      new ColumnRanks(limits.length) {
        override def notAbove(value: Any): Int = {
          val string = value.asInstanceOf[UTF8String]
          search(limits(_).binaryCompare(string) > 0)
        }
      }
    case other => throw new IllegalStateException(s"values of the type ${other.sql} have no order")
  }

  private def whole(bounds: Seq[Scalar], number: Any => Long): ColumnRanks = {
    val limits = bounds.map {
      case Scalar.Whole(value) => value.toLong
      case Scalar.Flag(value) => if (value) 1L else 0L
      case other => throw new IllegalStateException(s"$other is not a whole number")
    }.toArray
    new ColumnRanks(limits.length) {
      override def notAbove(value: Any): Int = {
        val own = number(value)
        search(limits(_) > own)
      }
    }
  }

  /** Zeros of both signs are one value, and NaN is above all. */
  private def real(bounds: Seq[Scalar]): ColumnRanks = {
    val limits = bounds.map {
      case Scalar.Real(value) => value
      case Scalar.Whole(value) => value.toDouble
      case Scalar.Text("Infinity") => Double.PositiveInfinity
      case Scalar.Text("-Infinity") => Double.NegativeInfinity
      case other => throw new IllegalStateException(s"$other is not a number")
    }.toArray
    new ColumnRanks(limits.length) {
      override def notAbove(value: Any): Int = {
        val own = value.asInstanceOf[Number].doubleValue
        if (own.isNaN) count else search(limits(_) > own)
      }
    }
  }

  private def text(bound: Scalar): String = bound match {
    case Scalar.Text(value) => value
    case other => throw new IllegalStateException(s"$other is not a text")
  }
}
