package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._

/** A single value in the form that the format has for it: see `literals` in `lakelog.catalog.core.schema`. */
private[lakelog] sealed trait Scalar

private[lakelog] object Scalar {
  case object Null extends Scalar
  final case class Flag(value: Boolean) extends Scalar
  final case class Whole(value: BigInt) extends Scalar
  final case class Real(value: Double) extends Scalar
  final case class Text(value: String) extends Scalar

  def whole(value: Long): Scalar = Whole(BigInt(value))

  implicit val codec: Codec[Scalar] = new Codec[Scalar] {

    override def write(value: Scalar): JValue = value match {
      case Null => JNull
      case Flag(flag) => JBool(flag)
      case Whole(number) => JInt(number)
      case Real(number) => JDouble(number)
      case Text(text) => JString(text)
    }

    override def read(json: JValue): Option[Scalar] = Some(json).collect {
      case JNull => Null
      case JBool(flag) => Flag(flag)
      case JInt(number) => Whole(number)
      case JLong(number) => whole(number)
      case JDouble(number) => Real(number)
      case JDecimal(number) => Real(number.toDouble)
      case JString(text) => Text(text)
    }
  }
}
