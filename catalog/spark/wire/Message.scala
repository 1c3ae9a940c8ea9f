package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._

/** How values of a type are written as JSON, and read. */
private[lakelog] abstract class Codec[T] {
  def write(value: T): JValue
  def read(json: JValue): Option[T]
}

private[lakelog] object Codec {

  private def of[T](writes: T => JValue)(reads: PartialFunction[JValue, T]): Codec[T] = new Codec[T] {
    override def write(value: T): JValue = writes(value)
    override def read(json: JValue): Option[T] = reads.lift(json)
  }

  implicit val text: Codec[String] = of[String](value => if (value == null) JNull else JString(value)) {
    case JString(value) => value
  }
  implicit val flag: Codec[Boolean] = of[Boolean](JBool(_)) { case JBool(value) => value }
  implicit val number: Codec[Double] = of[Double](JDouble(_)) {
    case JDouble(value) => value
    case JInt(value) => value.toDouble
  }
  implicit val whole: Codec[Long] = of[Long](JLong(_)) {
    case JInt(value) => value.toLong
    case JLong(value) => value
  }
  implicit val wholeOfAnySize: Codec[BigInt] = of[BigInt](JInt(_)) { case JInt(value) => value }
  implicit val closed: Codec[JObject] = of[JObject](identity) { case value: JObject => value }

  implicit def several[T](implicit one: Codec[T]): Codec[Seq[T]] =
    of[Seq[T]](values => JArray(values.map(one.write).toList)) {
      case JArray(values) => values.map(value => one.read(value).getOrElse(wrong(value)))
    }

  implicit def named[T](implicit one: Codec[T]): Codec[Map[String, T]] =
    of[Map[String, T]](values => JObject(values.toList.sortBy(_._1).map(each => each._1 -> one.write(each._2)))) {
      case JObject(values) => values.map { case (name, value) => name -> one.read(value).getOrElse(wrong(value)) }.toMap
    }

  /** Values by ids, which are texts in JSON. */
  implicit def byId[T](implicit one: Codec[T]): Codec[Map[Long, T]] =
    of[Map[Long, T]](values =>
      JObject(values.toList.sortBy(_._1).map(each => each._1.toString -> one.write(each._2)))) {
      case JObject(values) => values.map { case (id, value) =>
          id.toLong -> one.read(value).getOrElse(wrong(value))
        }.toMap
    }

  /** A value in a list or a map that may be null there. */
  implicit def orNull[T](implicit one: Codec[T]): Codec[Option[T]] =
    of[Option[T]](_.fold[JValue](JNull)(one.write)) {
      case JNull => None
      case value => Some(one.read(value).getOrElse(wrong(value)))
    }

  implicit def pair[A, B](implicit first: Codec[A], second: Codec[B]): Codec[(A, B)] =
    of[(A, B)](values => JArray(List(first.write(values._1), second.write(values._2)))) {
      case JArray(List(a, b)) => (first.read(a).getOrElse(wrong(a)), second.read(b).getOrElse(wrong(b)))
    }

  /** One of two forms that are distinct in JSON. */
  implicit def either[L, R](implicit left: Codec[L], right: Codec[R]): Codec[Either[L, R]] = new Codec[Either[L, R]] {
    override def write(value: Either[L, R]): JValue = value.fold(left.write, right.write)
    override def read(json: JValue): Option[Either[L, R]] =
      left.read(json).map(Left(_)).orElse(right.read(json).map(Right(_)))
  }

  def wrong(value: JValue): Nothing = throw new IllegalStateException(s"Python did not mean to say $value here")
}

/** What crosses the bridge: a request, an answer, or a part of one. */
private[lakelog] abstract class Message extends Product with Serializable {

  type Members = List[(String, JValue)]

  def members: Members

  /** What is not there is not written. */
  final def json: JObject = JObject(members.filter(_._2 != JNothing))

  final def asText: String = Json.text(json)

  protected def put[T](value: T)(implicit codec: Codec[T]): JValue = codec.write(value)

  protected def putOrNull[T](value: Option[T])(implicit codec: Codec[T]): JValue =
    value.fold[JValue](JNull)(codec.write)

  protected def putIfAny[T](value: Option[T])(implicit codec: Codec[T]): JValue =
    value.fold[JValue](JNothing)(codec.write)

  /** What is as it is anyway is not written. */
  protected def putUnless[T](value: T)(default: T)(implicit codec: Codec[T]): JValue =
    if (value == default) JNothing else codec.write(value)

  protected def has(json: JObject, member: String): Boolean = Json.get(json, member).isDefined
}

/** What is asked, and how the answer to it is read. */
private[lakelog] abstract class Request[A](val method: String) extends Message {
  def answer(json: JObject): A
}

/** A request that a token identifies when it is retried. */
private[lakelog] abstract class Change[A](method: String) extends Request[A](method) {

  /** What the token is of. */
  def subject: MakeToken
}

/** Reads messages of a class. A member that is missing is a bug of one of the two sides. */
private[lakelog] abstract class Companion[T <: Message] {

  def of(json: JObject): T

  final def parsed(text: String): T = of(Json.parsed(text))

  implicit val codec: Codec[T] = new Codec[T] {
    override def write(value: T): JValue = value.json
    override def read(json: JValue): Option[T] = Some(json).collect { case found: JObject => of(found) }
  }

  /** A member of what is closed otherwise. */
  private[wire] def part[V](json: JObject, name: String)(implicit codec: Codec[V]): V = take[V](json, name)

  protected def unknown(tag: String): Nothing = throw new IllegalStateException(s"Python did not mean to say $tag here")

  protected def take[V](json: JObject, name: String)(implicit codec: Codec[V]): V =
    takeIfAny[V](json, name).getOrElse(throw new IllegalStateException(
        s"Python's answer has no usable '$name': ${json.obj.map(_._1).mkString(", ")}"))

  protected def takeIfAny[V](json: JObject, name: String)(implicit codec: Codec[V]): Option[V] =
    Json.get(json, name).map(value => codec.read(value).getOrElse(Codec.wrong(value)))
}

/** What is added to any request: the transaction that it belongs to, and who wants the change that it asks for. */
private[lakelog] final case class Scope(transaction: Option[String] = None, query: Option[Statement] = None) {

  def on(request: Request[_]): JObject = Json.merge(
    request.json,
    transaction.map("transaction" -> JString(_)).toSeq ++ query.map("query" -> _.json): _*)
}

private[lakelog] object Scope {
  def of(json: JObject): Scope = Scope(
    Json.get(json, "transaction").collect { case JString(id) => id },
    Json.get(json, "query").collect { case query: JObject => Statement.of(query) })
}
