package org.apache.spark.sql.lakelog

import java.util.Base64

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.expressions.{Expression, FieldReference, GeneralScalarExpression, Literal, NamedReference, UserDefinedScalarFunc}
import org.apache.spark.sql.connector.expressions.filter.{And, Not, Or, Predicate}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Spark's predicates in the two forms that others understand: JSON for Python, and Parquet's names for the reader.
 *
 * Nothing is left out here. What Python does not know it treats as "may match" in a scan and refuses in a delete.
 */
private[lakelog] object Predicates {

  /** All of `predicates` together. */
  def toJson(predicates: Seq[Predicate]): JObject =
    predicates.flatMap(operands("AND", _)) match {
      case Seq() => op("ALWAYS_TRUE", Nil)
      case Seq(one) => condition(one)
      case several => op("AND", several.map(condition))
    }

  /** What `name` combines, at any depth: Spark nests pairs, and Python takes a list of any length but few levels. */
  private def operands(name: String, expression: Expression): Seq[Expression] = expression match {
    case pair: Predicate if pair.name == name => pair.children.toSeq.flatMap(operands(name, _))
    case other => Seq(other)
  }

  /** An expression where a condition is expected: a constant and a column of booleans may be one. */
  private def condition(expression: Expression): JObject = expression match {
    case literal: Literal[_] if literal.value == true => op("ALWAYS_TRUE", Nil)
    case literal: Literal[_] if literal.dataType == BooleanType => op("ALWAYS_FALSE", Nil)
    case column: NamedReference => op("=", Seq(toJson(column), literalJson(true, BooleanType)))
    case pair @ (_: And | _: Or) =>
      val name = pair.asInstanceOf[Predicate].name
      op(name, operands(name, pair).map(condition))
    case not: Not => op(not.name, Seq(condition(not.child)))
    case other => toJson(other)
  }

  private def toJson(expression: Expression): JObject = expression match {
    case reference: NamedReference => Json.obj("col" -> Json.texts(reference.fieldNames))
    case literal: Literal[_] if isInvalidText(literal) => op("SPARK:InvalidText", Nil)
    case literal: Literal[_] => literalJson(literal.value, literal.dataType)
    case known: GeneralScalarExpression => op(known.name, known.children.toSeq.map(toJson))
    case function: UserDefinedScalarFunc if function.canonicalName.startsWith("lakelog.") =>
      Json.obj("transform" -> JString(function.name), "args" -> JArray(function.children.toList.map {
        case number: Literal[_] => encode(number.value, number.dataType)
        case column => toJson(column)
      }))
    case other => op(s"SPARK:${other.getClass.getSimpleName}", other.children.toSeq.map(toJson))
  }

  /** A text that is not valid UTF-8 is another text as soon as JSON or a String of Java's holds it. */
  private def isInvalidText(literal: Literal[_]): Boolean = literal.value match {
    case text: UTF8String => !text.isValid
    case _ => false
  }

  private def op(name: String, arguments: Seq[JObject]): JObject =
    Json.obj("op" -> JString(name), "args" -> JArray(arguments.toList))

  private def literalJson(value: Any, dataType: DataType): JObject =
    Json.obj("lit" -> encode(value, dataType), "type" -> JsonMethods.parse(dataType.json))

  /** A value in Spark's internal representation as the format writes it; JNull for null. */
  def encode(value: Any, dataType: DataType): JValue = (value, dataType) match {
    case (null, _) => JNull
    case (v: Boolean, _) => JBool(v)
    case (v: Long, _: TimeType) => JLong(Math.floorDiv(v, NanosPerMicro))
    case (v: Byte, _) => JLong(v.toLong)
    case (v: Short, _) => JLong(v.toLong)
    case (v: Int, _) => JLong(v.toLong)
    case (v: Long, _) => JLong(v)
    case (v: Float, _) => real(v.toDouble)
    case (v: Double, _) => real(v)
    case (v: Decimal, _) => JString(v.toJavaBigDecimal.toPlainString)
    case (v: UTF8String, _) => JString(v.toString)
    case (v: Array[Byte], _) => JString(Base64.getEncoder.encodeToString(v))
    case (other, _) => JString(other.toString)
  }

  private val NanosPerMicro = 1000L

  private def real(value: Double): JValue =
    if (value.isNaN) JString("NaN")
    else if (value.isInfinite) JString(if (value > 0) "Infinity" else "-Infinity")
    else JDouble(value)

  /** The predicate about the files' columns; None where Parquet cannot be asked: it lacks a column, for example. */
  def physical(predicate: Predicate, path: Seq[String] => Option[Seq[String]]): Option[Predicate] =
    predicate match {
      case and: And =>
        for (l <- physical(and.left, path); r <- physical(and.right, path)) yield new And(l, r)
      case or: Or =>
        for (l <- physical(or.left, path); r <- physical(or.right, path)) yield new Or(l, r)
      case not: Not => physical(not.child, path).map(new Not(_))
      case other =>
        val children = other.children.toSeq.map {
          case reference: NamedReference => path(reference.fieldNames.toSeq).map(FieldReference(_): Expression)
          case literal: Literal[_] if !isInvalidText(literal) => Some(literal)
          case _ => None
        }
        if (children.forall(_.isDefined)) Some(new Predicate(other.name, children.flatten.toArray)) else None
    }
}
