package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.{JObject, JValue}

/**
 * A filter, or a part of one. Its members distinguish it, as the log has it in that form: see `Expression` in
 * `lakelog.catalog.core.schema`.
 */
private[lakelog] sealed abstract class Expression extends Message

private[lakelog] object Expression extends Companion[Expression] {

  /** A condition, or another operation, by Spark's name for it. */
  final case class Operation(op: String, args: Seq[Expression]) extends Expression {
    override def members: Members = List("op" -> put(op), "args" -> put(args))
  }

  /** A partition transform of a column, with its numbers before that. */
  final case class Transformed(transform: String, args: Seq[Either[Expression, Scalar]]) extends Expression {
    override def members: Members = List("transform" -> put(transform), "args" -> put(args))
  }

  final case class Column(path: Seq[String]) extends Expression {
    override def members: Members = List("col" -> put(path))
  }

  /** A value, and its type in Spark's JSON. */
  final case class Literal(value: Scalar, dataType: Option[FreeJson]) extends Expression {
    override def members: Members = List("lit" -> put(value), "type" -> putIfAny(dataType))
  }

  /** What only its engine knows. */
  final case class Opaque(text: String) extends Expression {
    override def members: Members = List("opaque" -> put(text))
  }

  override def of(json: JObject): Expression = json.obj.map(_._1).find(Kinds) match {
    case Some("op") => Operation(take[String](json, "op"), takeIfAny[Seq[Expression]](json, "args").getOrElse(Nil))
    case Some("transform") =>
      Transformed(
        take[String](json, "transform"), takeIfAny[Seq[Either[Expression, Scalar]]](json, "args").getOrElse(Nil))
    case Some("col") => Column(take[Seq[String]](json, "col"))
    case Some("lit") =>
      Literal(takeIfAny[Scalar](json, "lit").getOrElse(Scalar.Null), takeIfAny[FreeJson](json, "type"))
    case Some("opaque") => Opaque(take[String](json, "opaque"))
    case _ => Codec.wrong(json: JValue)
  }

  private val Kinds = Set("op", "transform", "col", "lit", "opaque")
}
