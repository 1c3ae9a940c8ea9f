package org.apache.spark.sql.lakelog.files

import java.math.BigInteger

import scala.util.Try

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.{And, Or, Predicate}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What Bloom filters can be asked of a scan's filters: that a column has one of some values. All else may be true of any
 * rows, and is left out.
 */
private[lakelog] sealed trait BloomCondition extends Serializable

private[lakelog] object BloomCondition {

  /** The column at that path in the files has, as its `dataType`, one of these values: see [[BloomValue]]. */
  final case class Has(path: Seq[String], dataType: DataType, values: Seq[BloomValue]) extends BloomCondition
  final case class All(parts: Seq[BloomCondition]) extends BloomCondition
  final case class Any(parts: Seq[BloomCondition]) extends BloomCondition

  /** Of all `predicates` together; None if no filter knows. `path` is that of a column in the files. */
  def of(
      predicates: Seq[Predicate], path: Seq[String] => Option[Seq[String]],
      typeOf: Seq[String] => Option[DataType]): Option[BloomCondition] = {
    def one(predicate: Expression): Option[BloomCondition] = predicate match {
      case and: And => all(Seq(one(and.left), one(and.right)).flatten)
      // If one side may be true of any row, so may be both.
      case or: Or => for (left <- one(or.left); right <- one(or.right)) yield Any(Seq(left, right))
      case test: Predicate => (test.name, test.children.toList) match {
          case ("=" | "<=>", List(column: NamedReference, value: Literal[_])) => has(column, Seq(value), test.name)
          case ("=" | "<=>", List(value: Literal[_], column: NamedReference)) => has(column, Seq(value), test.name)
          case ("IN", (column: NamedReference) :: values) if values.forall(_.isInstanceOf[Literal[_]]) =>
            has(column, values.map(_.asInstanceOf[Literal[_]]), test.name)
          case _ => None
        }
      case _ => None
    }
    def has(column: NamedReference, literals: Seq[Literal[_]], test: String): Option[BloomCondition] = {
      val name = column.fieldNames.toSeq
      // No row is equal to NULL, unless NULL is equal to itself.
      val there = if (test == "<=>") literals else literals.filter(_.value != null)
      for {
        dataType <- typeOf(name)
        file <- path(name)
        values = there.map(BloomValue.of(_, dataType))
        if values.forall(_.isDefined)
      } yield Has(file, dataType, values.flatten)
    }
    all(predicates.flatMap(one))
  }

  private def all(parts: Seq[BloomCondition]): Option[BloomCondition] =
    if (parts.isEmpty) None else if (parts.length == 1) parts.headOption else Some(All(parts))
}

/** A value as it is whatever type a file has for it: a number, that of a decimal without its point, or bytes. */
private[lakelog] sealed trait BloomValue extends Serializable

private[lakelog] object BloomValue {
  final case class Whole(number: BigInteger) extends BloomValue
  final case class Bytes(bytes: Array[Byte]) extends BloomValue

  /**
   * The value of a column of that type; None if filters do not know whether it is there: of types of which values are
   * equal that differ in a file, and if both sides are not of one type.
   */
  def of(literal: Literal[_], column: DataType): Option[BloomValue] = (column, literal.dataType, literal.value) match {
    case (_: IntegralType, _: IntegralType, number: Number) => Some(whole(number.longValue))
    case (DateType, DateType, days: Int) => Some(whole(days.toLong))
    case (TimestampType, TimestampType, micros: Long) => Some(whole(micros))
    case (TimestampNTZType, TimestampNTZType, micros: Long) => Some(whole(micros))
    case (own: DecimalType, _: DecimalType, value: Decimal) =>
      Try(value.toJavaBigDecimal.setScale(own.scale).unscaledValue).toOption.map(Whole(_))
    case (StringType | _: VarcharType, StringType | _: VarcharType, text: UTF8String)
        if plain(column, literal.dataType) =>
      Some(Bytes(text.getBytes))
    case (BinaryType, BinaryType, bytes: Array[Byte]) => Some(Bytes(bytes))
    case _ => None
  }

  private def plain(types: DataType*): Boolean = !types.exists(SchemaInternals.isCollated)

  private def whole(number: Long): BloomValue = Whole(BigInteger.valueOf(number))
}
