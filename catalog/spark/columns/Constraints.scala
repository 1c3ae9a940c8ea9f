package org.apache.spark.sql.lakelog.columns

import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{ConditionColumns, Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Check, Constraint, ForeignKey, PrimaryKey, Tables, Unique}
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** Spark's constraints as Python takes and gives them. */
private[lakelog] object Constraints {

  /** A constraint that is asked for, of a table with these columns. */
  def stated(constraint: Constraint, schema: StructType): wire.StatedConstraint = {
    def of(kind: String, columns: Seq[Seq[String]]) =
      wire.StatedConstraint(kind, constraint.name, columns, rely = constraint.rely)
    constraint match {
      case check: Check => of("check", ConditionColumns.in(check.predicateSql, schema)).copy(
          sql = Some(check.predicateSql),
          predicate = Option(check.predicate).map(known => Predicates.toPython(Seq(known))))
      case key: PrimaryKey => of("primary-key", columnsOf(key.columns, schema))
      case key: Unique => of("unique", columnsOf(key.columns, schema))
      case key: ForeignKey =>
        val table = key.referencedTable
        of("foreign-key", columnsOf(key.columns, schema)).copy(
          table = Some(table.namespace.toSeq :+ table.name),
          referenced = Some(key.referencedColumns.toSeq.map(_.fieldNames.mkString("."))))
      case other => throw Failures.unsupported(s"The constraint ${other.getClass.getSimpleName} is not supported.")
    }
  }

  /** A constraint of a table. A CHECK has been held against every row; whether keys hold is not known. */
  def toSpark(facts: wire.ConstraintFacts): Constraint = {
    val (name, rely) = (facts.name, facts.rely)
    def columns: Array[NamedReference] = facts.columns.map(SchemaInternals.reference(_): NamedReference).toArray
    facts.kind match {
      case "check" =>
        Tables.check(name, facts.sql.get, facts.predicate.flatMap(CheckPredicates.toSpark), rely)
      case "primary-key" => Tables.primaryKey(name, columns, rely)
      case "unique" => Tables.unique(name, columns, rely)
      case "foreign-key" =>
        val referenced: Array[NamedReference] =
          facts.referenced.get.map(column => SchemaInternals.reference(Seq(column)): NamedReference).toArray
        Tables.foreignKey(name, columns, CatalogNames.identifier(facts.table.get), referenced, rely)
    }
  }

  private def columnsOf(references: Array[NamedReference], schema: StructType): Seq[Seq[String]] = {
    val names = references.toSeq.map(_.fieldNames.toSeq)
    names.foreach(ConditionColumns.require(_, schema))
    names
  }
}
