package org.apache.spark.sql.lakelog.columns

import java.util.Base64

import org.apache.spark.sql.connector.expressions.{Expression, GeneralScalarExpression, LiteralValue}
import org.apache.spark.sql.connector.expressions.filter.{AlwaysFalse, AlwaysTrue, And, Not, Or, Predicate}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The condition of a CHECK back from what [[Predicates]] made of it.
 *
 * Spark prefers this form to the words when it holds rows against the condition: here its analysis has left its marks,
 * such as blanks behind a text that is compared with a CHAR.
 */
private[lakelog] object CheckPredicates {
  import wire.Expression.{Column, Literal, Operation}
  import wire.Scalar

  /** None if a part of it was kept by its name only: then the words count. */
  def toSpark(condition: wire.Expression): Option[Predicate] = condition match {
    case Operation("ALWAYS_TRUE", _) => Some(new AlwaysTrue)
    case Operation("ALWAYS_FALSE", _) => Some(new AlwaysFalse)
    case Operation("AND", parts) => all(parts.map(toSpark)).map(_.reduceLeft[Predicate](new And(_, _)))
    case Operation("OR", parts) => all(parts.map(toSpark)).map(_.reduceLeft[Predicate](new Or(_, _)))
    case Operation("NOT", parts) => all(parts.map(toSpark)).map(parts => new Not(parts.head))
    case Operation(unknown, _) if unknown.startsWith("SPARK:") => None
    case Operation(name, parts) => all(parts.map(expression)).map(parts => new Predicate(name, parts.toArray))
    case _ => None
  }

  private def expression(part: wire.Expression): Option[Expression] = part match {
    case Column(path) => Some(SchemaInternals.reference(path))
    case Literal(value, Some(dataType)) => literal(value, dataType.dataType)
    case Operation(unknown, _) if unknown.startsWith("SPARK:") => None
    case Operation(name, _) if Conditions(name) => toSpark(part)
    case Operation(name, parts) =>
      all(parts.map(expression)).map(parts => new GeneralScalarExpression(name, parts.toArray))
    case _ => None
  }

  private val Conditions = Set(
    "ALWAYS_TRUE", "ALWAYS_FALSE", "AND", "OR", "NOT", "=", "<>", "<=>", "<", "<=", ">", ">=", "IN", "IS_NULL",
    "IS_NOT_NULL", "STARTS_WITH", "ENDS_WITH", "CONTAINS")

  private def literal(value: Scalar, dataType: DataType): Option[Expression] =
    decode(value, dataType).map(LiteralValue(_, dataType))

  private def decode(value: Scalar, dataType: DataType): Option[Any] = (value, dataType) match {
    case (Scalar.Null, _) => Some(null)
    case (Scalar.Flag(v), BooleanType) => Some(v)
    case (Scalar.Whole(v), ByteType) => Some(v.toByte)
    case (Scalar.Whole(v), ShortType) => Some(v.toShort)
    case (Scalar.Whole(v), IntegerType | DateType | _: YearMonthIntervalType) => Some(v.toInt)
    case (Scalar.Whole(v), LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType) => Some(v.toLong)
    case (real, FloatType) => number(real).map(_.toFloat)
    case (real, DoubleType) => number(real)
    case (Scalar.Text(v), decimal: DecimalType) => Some(Decimal(BigDecimal(v), decimal.precision, decimal.scale))
    case (Scalar.Text(v), _: StringType) => Some(UTF8String.fromString(v))
    case (Scalar.Text(v), BinaryType) => Some(Base64.getDecoder.decode(v))
    case _ => None
  }

  private def number(value: Scalar): Option[Double] = value match {
    case Scalar.Real(v) => Some(v)
    case Scalar.Whole(v) => Some(v.toDouble)
    case Scalar.Text(v @ ("NaN" | "Infinity" | "-Infinity")) => Some(v.toDouble)
    case _ => None
  }

  private def all[T](parts: Seq[Option[T]]): Option[Seq[T]] =
    if (parts.forall(_.isDefined)) Some(parts.flatten) else None
}
