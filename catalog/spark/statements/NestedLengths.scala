package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedFieldName, ResolvedTable}
import org.apache.spark.sql.catalyst.plans.logical.{AlterColumns, AlterColumnSpec, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.statements.EarlyRewrite
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.{CharType, DataType, StructField, StructType, VarcharType}

/**
 * Shows Spark which VARCHAR or CHAR it is that ALTER COLUMN changes inside a struct, array or map.
 *
 * Spark takes it for a STRING there: it would refuse every longer VARCHAR, and drop TYPE STRING from the statement, as if
 * that changed nothing. So the types that the statement has are noted before Spark resolves it.
 */
private[lakelog] object NestedLengths extends (SparkSession => Rule[LogicalPlan]) {

  private val stated = TreeNodeTag[Seq[Option[DataType]]]("lakelog.types")

  object Statement extends EarlyRewrite {
    override protected val rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
      case alter: AlterColumns if alter.getTagValue(stated).isEmpty =>
        alter.setTagValue(stated, alter.specs.map(_.newDataType))
        alter
    }
  }

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case alter: AlterColumns => (alter.table, alter.getTagValue(stated)) match {
          case (ResolvedTable(_, _, table: LakeTable, _), Some(types)) =>
            val exact = alter.specs.zip(types).map { case (spec, stated) => withLength(spec, stated, table.schema) }
            if (exact == alter.specs) alter else alter.copy(specs = exact)
          case _ => alter
        }
    }
  }

  private def withLength(spec: AlterColumnSpec, stated: Option[DataType], schema: StructType): AlterColumnSpec =
    spec.column match {
      case column @ ResolvedFieldName(path, shown) if path.nonEmpty =>
        schema.findNestedField(column.name, includeCollections = true).map(_._2) match {
          case Some(field @ StructField(_, _: VarcharType | _: CharType, _, _)) =>
            val known = SchemaInternals.withoutCharVarchar(StructType(Array(field))).head
            spec.copy(
              column = column.copy(field = shown.copy(metadata = known.metadata)),
              newDataType = stated.filter(_ != field.dataType))
          case _ => spec
        }
      case _ => spec
    }
}
