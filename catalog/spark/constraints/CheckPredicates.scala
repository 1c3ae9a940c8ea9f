package org.apache.spark.sql.lakelog

import java.util.Base64

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.expressions.{Expression, GeneralScalarExpression, LiteralValue}
import org.apache.spark.sql.connector.expressions.filter.{AlwaysFalse, AlwaysTrue, And, Not, Or, Predicate}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The condition of a CHECK back from the JSON that [[Predicates]] made of it.
 *
 * Spark prefers this form to the words when it holds rows against the condition: here its analysis has left its marks,
 * such as blanks behind a text that is compared with a CHAR.
 */
private[lakelog] object CheckPredicates {

  /** None where a part of it was kept by its name only: then the words count. */
  def fromJson(json: JObject): Option[Predicate] = {
    val name = Json.string(json, "op")
    val arguments = Json.objects(json, "args")
    name match {
      case "ALWAYS_TRUE" => Some(new AlwaysTrue)
      case "ALWAYS_FALSE" => Some(new AlwaysFalse)
      case "AND" => all(arguments.map(fromJson)).map(_.reduceLeft(new And(_, _)))
      case "OR" => all(arguments.map(fromJson)).map(_.reduceLeft(new Or(_, _)))
      case "NOT" => all(arguments.map(fromJson)).map(parts => new Not(parts.head))
      case unknown if unknown.startsWith("SPARK:") => None
      case _ => all(arguments.map(expression)).map(parts => new Predicate(name, parts.toArray))
    }
  }

  private def expression(json: JObject): Option[Expression] =
    if (json.obj.exists(_._1 == "col")) Some(SchemaInternals.reference(Json.stringList(Json.get(json, "col").get)))
    else if (json.obj.exists(_._1 == "lit")) literal(json)
    else if (json.obj.exists(_._1 == "op")) {
      val name = Json.string(json, "op")
      if (name.startsWith("SPARK:")) None
      else if (Conditions(name)) fromJson(json)
      else all(Json.objects(json, "args").map(expression)).map(parts => new GeneralScalarExpression(name, parts.toArray))
    } else None

  private val Conditions = Set(
    "ALWAYS_TRUE", "ALWAYS_FALSE", "AND", "OR", "NOT", "=", "<>", "<=>", "<", "<=", ">", ">=", "IN", "IS_NULL",
    "IS_NOT_NULL", "STARTS_WITH", "ENDS_WITH", "CONTAINS")

  private def literal(json: JObject): Option[Expression] = {
    val dataType = DataType.fromJson(JsonMethods.compact(JsonMethods.render(Json.get(json, "type").getOrElse(JNothing))))
    val value = json.obj.collectFirst { case ("lit", stored) => stored }.get
    decode(value, dataType).map(LiteralValue(_, dataType))
  }

  private def decode(value: JValue, dataType: DataType): Option[Any] = (value, dataType) match {
    case (JNull, _) => Some(null)
    case (JBool(v), BooleanType) => Some(v)
    case (JInt(v), ByteType) => Some(v.toByte)
    case (JInt(v), ShortType) => Some(v.toShort)
    case (JInt(v), IntegerType | DateType | _: YearMonthIntervalType) => Some(v.toInt)
    case (JInt(v), LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType) => Some(v.toLong)
    case (real, FloatType) => number(real).map(_.toFloat)
    case (real, DoubleType) => number(real)
    case (JString(v), decimal: DecimalType) => Some(Decimal(BigDecimal(v), decimal.precision, decimal.scale))
    case (JString(v), _: StringType) => Some(UTF8String.fromString(v))
    case (JString(v), BinaryType) => Some(Base64.getDecoder.decode(v))
    case _ => None
  }

  private def number(value: JValue): Option[Double] = value match {
    case JDouble(v) => Some(v)
    case JInt(v) => Some(v.toDouble)
    case JDecimal(v) => Some(v.toDouble)
    case JString(v @ ("NaN" | "Infinity" | "-Infinity")) => Some(v.toDouble)
    case _ => None
  }

  private def all[T](parts: List[Option[T]]): Option[List[T]] =
    if (parts.forall(_.isDefined)) Some(parts.flatten) else None
}
