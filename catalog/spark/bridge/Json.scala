package org.apache.spark.sql.lakelog

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

/** The few ways in which the adapter builds and reads JSON. A missing member is a bug of one of the two sides. */
private[lakelog] object Json {

  def obj(members: (String, JValue)*): JObject = JObject(members.toList)

  def text(value: String): JValue = if (value == null) JNull else JString(value)

  /** What is written of an object. */
  def text(json: JObject): String = JsonMethods.compact(JsonMethods.render(json))

  def texts(values: Iterable[String]): JArray = JArray(values.map(text).toList)

  def strings(values: JMap[String, String]): JObject =
    JObject(values.asScala.toList.sortBy(_._1).map { case (key, value) => key -> JString(value) })

  /** The object with these members set; a member that is there already is replaced. */
  def merge(base: JObject, members: (String, JValue)*): JObject = {
    val names = members.map(_._1).toSet
    JObject(base.obj.filterNot(member => names(member._1)) ++ members)
  }

  def get(json: JObject, name: String): Option[JValue] =
    json.obj.collectFirst { case (`name`, value) if value != JNull && value != JNothing => value }

  def string(json: JObject, name: String): String = optionalString(json, name).getOrElse(missing(json, name))

  def optionalString(json: JObject, name: String): Option[String] = get(json, name).collect { case JString(s) => s }

  def long(json: JObject, name: String): Long = get(json, name) match {
    case Some(JInt(value)) => value.toLong
    case Some(JLong(value)) => value
    case _ => missing(json, name)
  }

  def bool(json: JObject, name: String): Boolean =
    get(json, name).collect { case JBool(value) => value }.getOrElse(missing(json, name))

  def child(json: JObject, name: String): JObject =
    get(json, name).collect { case value: JObject => value }.getOrElse(missing(json, name))

  def list(json: JObject, name: String): List[JValue] =
    get(json, name).collect { case JArray(values) => values }.getOrElse(missing(json, name))

  def objects(json: JObject, name: String): List[JObject] = list(json, name).collect { case value: JObject => value }

  def stringList(value: JValue): List[String] = value match {
    case JArray(values) => values.collect { case JString(s) => s }
    case _ => Nil
  }

  def stringMap(json: JObject, name: String): Map[String, String] =
    child(json, name).obj.collect { case (key, JString(value)) => key -> value }.toMap

  private def missing(json: JObject, name: String): Nothing =
    throw new IllegalStateException(s"Python's answer has no usable '$name': ${json.obj.map(_._1).mkString(", ")}")
}
