package org.apache.spark.sql.lakelog.expressions

import java.util.Base64

import org.apache.spark.sql.connector.expressions.{Expression, FieldReference, GeneralScalarExpression, Literal, NamedReference, UserDefinedScalarFunc}
import org.apache.spark.sql.connector.expressions.filter.{And, Not, Or, Predicate}
import org.apache.spark.sql.lakelog.internals.{FilterInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.TimeType
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.sources
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Spark's predicates in the two forms that others understand: expressions for Python, and filters by the files' names for the
 * reader.
 *
 * Nothing is left out here but what is nested too deeply to be sent. What Python does not know it treats as "may match"
 * in a scan and refuses in a delete.
 */
private[lakelog] object Predicates {
  import wire.Scalar

  /** All of `predicates` together. */
  def toPython(predicates: Seq[Predicate]): wire.Expression =
    predicates.flatMap(operands("AND", _)) match {
      case Seq() => op("ALWAYS_TRUE", Nil)
      case Seq(one) => condition(one, 0)
      case several => op("AND", several.map(condition(_, 1)))
    }

  /** What `name` combines, at any depth: Spark nests pairs, and Python takes a list of any length but few levels. */
  private def operands(name: String, expression: Expression): Seq[Expression] = expression match {
    case pair: Predicate if pair.name == name => pair.children.toSeq.flatMap(operands(name, _))
    case other => Seq(other)
  }

  /** An expression where a condition is expected: a constant and a column of booleans may be one. */
  private def condition(expression: Expression, level: Int): wire.Expression = expression match {
    case literal: Literal[_] if literal.value == true => op("ALWAYS_TRUE", Nil)
    case literal: Literal[_] if literal.value == false => op("ALWAYS_FALSE", Nil)
    // NOT of it is NULL too.
    case literal: Literal[_] if literal.dataType == BooleanType => op("AND", Seq(literalOf(null, BooleanType)))
    case column: NamedReference => op("=", Seq(toPython(column, level), literalOf(true, BooleanType)))
    case _: Predicate if level > Levels => tooDeep
    case pair @ (_: And | _: Or) =>
      val name = pair.asInstanceOf[Predicate].name
      op(name, operands(name, pair).map(condition(_, level + 1)))
    case not: Not => op(not.name, Seq(condition(not.child, level + 1)))
    case other => toPython(other, level)
  }

  private def toPython(expression: Expression, level: Int): wire.Expression = expression match {
    case reference: NamedReference => wire.Expression.Column(reference.fieldNames.toSeq)
    case literal: Literal[_] if !isHeld(literal) => op("SPARK:Literal", Nil)
    case literal: Literal[_] => literalOf(literal.value, literal.dataType)
    case _ if level > Levels => tooDeep
    case known: GeneralScalarExpression => op(known.name, known.children.toSeq.map(toPython(_, level + 1)))
    case function: UserDefinedScalarFunc if function.canonicalName.startsWith("lakelog.") =>
      wire.Expression.Transformed(
        function.name,
        function.children.toSeq.map {
          case number: Literal[_] => Right(encode(number.value, number.dataType))
          case column => Left(toPython(column, level + 1))
        })
    case other => op(s"SPARK:${other.getClass.getSimpleName}", other.children.toSeq.map(toPython(_, level + 1)))
  }

  /**
   * Whether JSON and Parquet hold the value. A text that is not valid UTF-8 is another text as soon as a String of
   * Java's has it, and columns of times have microseconds.
   */
  private def isHeld(literal: Literal[_]): Boolean = (literal.value, literal.dataType) match {
    case (text: UTF8String, _) => text.isValid
    case (nanos: Long, _: TimeType) => nanos % NanosPerMicro == 0
    case _ => true
  }

  /** Python reads as many levels of a predicate, and cannot parse JSON of many more. */
  private val Levels = 200

  /** What all of these conditions hold for. */
  def all(conditions: Seq[wire.Expression]): wire.Expression = op("AND", conditions)

  /** What any of these conditions holds for. */
  def any(conditions: Seq[wire.Expression]): wire.Expression = op("OR", conditions)

  private def tooDeep: wire.Expression = op("SPARK:Nested", Nil)

  private def op(name: String, arguments: Seq[wire.Expression]): wire.Expression =
    wire.Expression.Operation(name, arguments)

  /** A value in Spark's internal representation, in its type. */
  def literalOf(value: Any, dataType: DataType): wire.Expression =
    wire.Expression.Literal(encode(value, dataType), Some(wire.FreeJson.of(typeOf(dataType))))

  /**
   * Texts are VARCHARs, of which all blanks count, beside a CHAR too: if Spark compares as if these were padded, it has
   * padded both sides before a catalog sees them. It does so for columns and `=`, `<`, IN and the like; not for LIKE,
   * BETWEEN, functions and fields of structs.
   */
  private def typeOf(dataType: DataType): DataType = dataType match {
    case StringType => VarcharType(Int.MaxValue)
    case other => other
  }

  /** A value in Spark's internal representation as the format writes it. */
  def encode(value: Any, dataType: DataType): wire.Scalar = (value, dataType) match {
    case (null, _) => Scalar.Null
    case (v: Boolean, _) => Scalar.Flag(v)
    case (v: Long, _: TimeType) => Scalar.whole(Math.floorDiv(v, NanosPerMicro))
    case (v: Byte, _) => Scalar.whole(v.toLong)
    case (v: Short, _) => Scalar.whole(v.toLong)
    case (v: Int, _) => Scalar.whole(v.toLong)
    case (v: Long, _) => Scalar.whole(v)
    case (v: Float, _) => real(v.toDouble)
    case (v: Double, _) => real(v)
    case (v: Decimal, _) => Scalar.Text(v.toJavaBigDecimal.toPlainString)
    case (v: UTF8String, _) => Scalar.Text(v.toString)
    case (v: Array[Byte], _) => Scalar.Text(Base64.getEncoder.encodeToString(v))
    case (other, _) => Scalar.Text(other.toString)
  }

  private val NanosPerMicro = 1000L

  private def real(value: Double): wire.Scalar =
    if (value.isNaN) Scalar.Text("NaN")
    else if (value.isInfinite) Scalar.Text(if (value > 0) "Infinity" else "-Infinity")
    else Scalar.Real(value)

  /**
   * The predicate about the files' columns, as Spark's Parquet reader takes it; None if Parquet cannot be asked: it
   * lacks a column, for example, or compares it by a collation. Both sides of an OR have to be there, which Spark's own
   * conversion does not see to.
   */
  def onFiles(
      predicate: Predicate, path: Seq[String] => Option[Seq[String]], typeOf: Seq[String] => Option[DataType],
      isNegated: Boolean = false): Option[Filter] = predicate match {
    case and: And => both(and.left, and.right, path, typeOf, isNegated)(sources.And(_, _))
    case or: Or => both(or.left, or.right, path, typeOf, isNegated)(sources.Or(_, _))
    case not: Not => onFiles(not.child, path, typeOf, !isNegated).map(sources.Not(_))
    case other if !NullTests(other.name) && !boundsDecide(other, typeOf, isNegated) => None
    case other =>
      val children = other.children.toSeq.map {
        case reference: NamedReference => path(reference.fieldNames.toSeq).map(FieldReference(_): Expression)
        case literal: Literal[_] if SchemaInternals.isCollated(literal.dataType) => None
        case literal: Literal[_] if isHeld(literal) && fitsOldFiles(literal) => Some(literal)
        case _ => None
      }
      if (children.exists(_.isEmpty)) None
      else FilterInternals.v1Filter(new Predicate(other.name, ordered(other.name, children.flatten).toArray))
  }

  private def both(
      left: Predicate, right: Predicate, path: Seq[String] => Option[Seq[String]],
      typeOf: Seq[String] => Option[DataType], isNegated: Boolean)(pair: (Filter, Filter) => Filter): Option[Filter] =
    for (l <- onFiles(left, path, typeOf, isNegated); r <- onFiles(right, path, typeOf, isNegated)) yield pair(l, r)

  /**
   * Whether the bounds in a file decide about a comparison as Spark does. Texts with a collation have bounds by bytes. Of
   * floats, NaN is outside of the bounds that Arrow and others write, and greater than all for Spark: what may be true of
   * it cannot be asked.
   */
  private def boundsDecide(
      predicate: Predicate, typeOf: Seq[String] => Option[DataType], isNegated: Boolean): Boolean = {
    val types = predicate.references.toSeq.flatMap(each => typeOf(each.fieldNames.toSeq))
    def isFalseOfNaN = !isNegated && FalseOfNaN(predicate.name) && predicate.children.tail.forall {
      case literal: Literal[_] => !isNaN(literal.value)
      case _ => false
    }
    !types.exists(SchemaInternals.isCollated) &&
    (!types.exists(each => each == FloatType || each == DoubleType) || isFalseOfNaN)
  }

  private val FalseOfNaN = Set("=", "<=>", "<", "<=", "IN")

  private def isNaN(value: Any): Boolean = value match {
    case number: Double => number.isNaN
    case number: Float => number.isNaN
    case _ => false
  }

  /**
   * Whether Spark can make words of an expression: for a text test it cuts off the quotes of the text, which one with a
   * collation does not have, and fails.
   */
  def isPrintable(expression: Expression): Boolean = expression match {
    case test: Predicate if TextTests(test.name) && test.children.exists {
          case literal: Literal[_] => SchemaInternals.isCollated(literal.dataType)
          case _ => false
        } => false
    case other => other.children.forall(isPrintable)
  }

  def words(predicate: Predicate): String =
    if (isPrintable(predicate)) predicate.toString
    else s"${predicate.name}(${predicate.references.map(_.describe).distinct.mkString(", ")}, …)"

  private val TextTests = Set("STARTS_WITH", "ENDS_WITH", "CONTAINS")

  private val NullTests = Set("IS_NULL", "IS_NOT_NULL")

  /**
   * Whether each file has room for the value, whatever the column was widened from: Spark cuts a decimal to the 4, 8 or
   * more bytes that a file has for it, without a look at what is lost.
   */
  private def fitsOldFiles(literal: Literal[_]): Boolean = literal.value match {
    case decimal: Decimal => decimal.toJavaBigDecimal.precision <= Decimal.MAX_INT_DIGITS
    case _ => true
  }

  /**
   * The column and values of an IN, the largest whole number first: Spark 4.2 asks of the first one only whether a
   * file's column holds it, which may be of INTs there, and cuts the others.
   */
  private def ordered(name: String, children: Seq[Expression]): Seq[Expression] =
    if (name != "IN") children
    else children.head +: children.tail.sortBy {
      case literal: Literal[_] => literal.value match {
          case number: Long => -math.abs(number.toDouble)
          case _ => 0.0
        }
      case _ => 0.0
    }
}
