package org.apache.spark.sql.lakelog

import java.math.{BigDecimal => JBigDecimal}
import java.util.Base64

import org.json4s.JsonAST._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Values in the format's JSON, and as Spark has them. */
private[lakelog] object Constants {

  /** The constants of the file at that place, as the columns are of `schema`. */
  def row(files: PlannedFiles, place: Int, schema: ShapedSchema): InternalRow = {
    val json = files.constants(place)
    val known = if (json == null) Map.empty[Long, JObject] else FileShape.constants(json)
    InternalRow.fromSeq(schema.meanings.zip(schema.constants.fields).map {
      case (FileConstant.Name, _) => UTF8String.fromString(files.name(place))
      case (FileConstant.FirstRow, _) => files.firstRow(place).getOrElse(null)
      case (FileConstant.Version, _) => files.version(place).getOrElse(null)
      case (FileConstant.OfColumn(id), field) =>
        value(Json.get(known(id), "value").getOrElse(JNull), Json.string(known(id), "type"), field.dataType)
    })
  }

  /** A value of the type `from`, written as its JSON name, as the column is now that is of the type `to`. */
  def value(json: JValue, from: String, to: DataType): Any = {
    val there = DataType.fromJson("\"" + from + "\"")
    converted(decode(json, there), there, to)
  }

  /** A column's type only ever gets wider, so that this cannot fail. */
  private def converted(value: Any, from: DataType, to: DataType): Any =
    if (value == null || from == to) value else Cast(Literal(value, from), to, Some("UTC"), EvalMode.ANSI).eval()

  /** What [[Predicates.encode]] has made of a value. */
  def decode(value: JValue, dataType: DataType): Any = (value, dataType) match {
    case (JNull | JNothing, _) => null
    case (JBool(flag), BooleanType) => flag
    case (JInt(number), ByteType) => number.toByte
    case (JInt(number), ShortType) => number.toShort
    case (JInt(number), IntegerType | DateType | _: YearMonthIntervalType) => number.toInt
    case (JInt(number), LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType) => number.toLong
    case (JInt(number), _: TimeType) => number.toLong * NanosPerMicro
    case (number, FloatType) => real(number).toFloat
    case (number, DoubleType) => real(number)
    case (JString(digits), decimal: DecimalType) => Decimal(new JBigDecimal(digits), decimal.precision, decimal.scale)
    case (JString(text), BinaryType) => Base64.getDecoder.decode(text)
    case (JString(text), _: StringType) => UTF8String.fromString(text)
    case _ => throw new IllegalStateException(s"The log has $value for a value of type ${dataType.sql}.")
  }

  private val NanosPerMicro = 1000L

  private def real(value: JValue): Double = value match {
    case JDouble(number) => number
    case JDecimal(number) => number.toDouble
    case JInt(number) => number.toDouble
    case JString("NaN") => Double.NaN
    case JString("Infinity") => Double.PositiveInfinity
    case JString("-Infinity") => Double.NegativeInfinity
    case other => throw new IllegalStateException(s"The log has $other for a number.")
  }
}
