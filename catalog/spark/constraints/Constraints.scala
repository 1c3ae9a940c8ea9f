package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JBool, JNull, JObject, JString, JValue}

import org.apache.spark.sql.connector.catalog.constraints.{Check, Constraint, ForeignKey, PrimaryKey, Unique}
import org.apache.spark.sql.connector.catalog.constraints.Constraint.ValidationStatus
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.types.StructType

/** Spark's constraints as Python takes and gives them. */
private[lakelog] object Constraints {

  /** A constraint that is asked for, of a table with these columns. */
  def toJson(constraint: Constraint, schema: StructType): JObject = {
    val own: Seq[(String, JValue)] = constraint match {
      case check: Check =>
        val predicate = Option(check.predicate).map(known => Predicates.toJson(Seq(known)))
        val columns = ConstraintInternals.columnsIn(check.predicateSql, schema)
        Seq(
          "kind" -> JString("check"), "columns" -> paths(columns), "sql" -> JString(check.predicateSql),
          "predicate" -> predicate.getOrElse(JNull))
      case key: PrimaryKey => Seq("kind" -> JString("primary-key"), "columns" -> columnsOf(key.columns, schema))
      case key: Unique => Seq("kind" -> JString("unique"), "columns" -> columnsOf(key.columns, schema))
      case key: ForeignKey =>
        val table = key.referencedTable
        Seq(
          "kind" -> JString("foreign-key"), "columns" -> columnsOf(key.columns, schema),
          "table" -> Json.texts(table.namespace :+ table.name),
          "referenced" -> Json.texts(key.referencedColumns.map(_.fieldNames.mkString("."))))
      case other => throw Failures.unsupported(s"The constraint ${other.getClass.getSimpleName} is not supported.")
    }
    Json.merge(Json.obj(own: _*), "name" -> JString(constraint.name), "rely" -> JBool(constraint.rely))
  }

  /** A constraint of a table. A CHECK has been held against every row; whether keys hold is not known. */
  def toSpark(facts: wire.ConstraintFacts): Constraint = {
    val (name, rely) = (facts.name, facts.rely)
    def columns: Array[NamedReference] = facts.columns.map(SchemaInternals.reference(_): NamedReference).toArray
    facts.kind match {
      case "check" =>
        Constraint.check(name).predicateSql(facts.sql.get)
          .predicate(facts.predicate.flatMap(CheckPredicates.fromJson).orNull).enforced(true).rely(rely)
          .validationStatus(ValidationStatus.VALID).build()
      case "primary-key" =>
        Constraint.primaryKey(name, columns).enforced(false).rely(rely)
          .validationStatus(ValidationStatus.UNVALIDATED).build()
      case "unique" =>
        Constraint.unique(name, columns).enforced(false).rely(rely)
          .validationStatus(ValidationStatus.UNVALIDATED).build()
      case "foreign-key" =>
        val referenced: Array[NamedReference] =
          facts.referenced.get.map(column => SchemaInternals.reference(Seq(column)): NamedReference).toArray
        Constraint.foreignKey(name, columns, LakeCatalog.identifier(facts.table.get), referenced)
          .enforced(false).rely(rely).validationStatus(ValidationStatus.UNVALIDATED).build()
    }
  }

  private def columnsOf(references: Array[NamedReference], schema: StructType): JArray = {
    val names = references.toSeq.map(_.fieldNames.toSeq)
    names.foreach(ConstraintInternals.requireColumn(_, schema))
    paths(names)
  }

  private def paths(names: Seq[Seq[String]]): JArray = JArray(names.map(Json.texts(_)).toList)
}
