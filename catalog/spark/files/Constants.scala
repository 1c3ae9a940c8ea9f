package org.apache.spark.sql.lakelog.files

import java.math.{BigDecimal => JBigDecimal}
import java.util.Base64

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.lakelog.internals.seam.TimeType
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Values in the format's JSON, and as Spark has them. */
private[lakelog] object Constants {
  import wire.Scalar

  /** The constants of the file at that place, as the columns are of `schema`. */
  def row(files: PlannedFiles, place: Int, schema: ShapedSchema): InternalRow = {
    val json = files.constants(place)
    val known = if (json == null) Map.empty[Long, wire.TypedValue] else FileShape.constants(json)
    InternalRow.fromSeq(schema.meanings.zip(schema.constants.fields).map {
      case (FileConstant.Name, _) => UTF8String.fromString(files.name(place))
      case (FileConstant.FirstRow, _) => files.firstRow(place).getOrElse(null)
      case (FileConstant.Version, _) => files.version(place).getOrElse(null)
      case (FileConstant.OfColumn(id), field) =>
        value(known(id).value.getOrElse(Scalar.Null), known(id).`type`, field.dataType)
    })
  }

  /** A value of the type `from`, written as its JSON name, as the column is now that is of the type `to`. */
  def value(value: Scalar, from: String, to: DataType): Any = {
    val there = wire.FreeJson.named(from).dataType
    converted(decode(value, there), there, to)
  }

  /** A column's type only ever gets wider, so that this cannot fail. */
  private def converted(value: Any, from: DataType, to: DataType): Any =
    if (value == null || from == to) value else Cast(Literal(value, from), to, Some("UTC"), EvalMode.ANSI).eval()

  /** What [[Predicates.encode]] has made of a value. */
  def decode(value: Scalar, dataType: DataType): Any = (value, dataType) match {
    case (Scalar.Null, _) => null
    case (Scalar.Flag(flag), BooleanType) => flag
    case (Scalar.Whole(number), ByteType) => number.toByte
    case (Scalar.Whole(number), ShortType) => number.toShort
    case (Scalar.Whole(number), IntegerType | DateType | _: YearMonthIntervalType) => number.toInt
    case (Scalar.Whole(number), LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType) => number.toLong
    case (Scalar.Whole(number), _: TimeType) => number.toLong * NanosPerMicro
    case (number, FloatType) => real(number).toFloat
    case (number, DoubleType) => real(number)
    case (Scalar.Text(digits), decimal: DecimalType) =>
      Decimal(new JBigDecimal(digits), decimal.precision, decimal.scale)
    case (Scalar.Text(text), BinaryType) => Base64.getDecoder.decode(text)
    case (Scalar.Text(text), _: StringType) => UTF8String.fromString(text)
    case _ => throw new IllegalStateException(s"The log has $value for a value of type ${dataType.sql}.")
  }

  private val NanosPerMicro = 1000L

  private def real(value: Scalar): Double = value match {
    case Scalar.Real(number) => number
    case Scalar.Whole(number) => number.toDouble
    case Scalar.Text("NaN") => Double.NaN
    case Scalar.Text("Infinity") => Double.PositiveInfinity
    case Scalar.Text("-Infinity") => Double.NegativeInfinity
    case other => throw new IllegalStateException(s"The log has $other for a number.")
  }
}
