package org.apache.spark.sql.lakelog.internals.streams

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * Shows the CHAR and VARCHAR columns of a table to its streams as Spark shows those of every other relation: as texts. It
 * leaves a stream's as they are, and refuses the plan then, as its own fault.
 */
private[lakelog] object StreamedTexts extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUpWithNewOutput {
      case stream: StreamingRelationV2 if stream.table.isInstanceOf[LakeTable] && stream.output.exists(isOther) =>
        val shown = stream.output.map(asText)
        stream.copy(output = shown) -> stream.output.zip(shown)
    }
  }

  private def isOther(column: Attribute): Boolean = asText(column).dataType != column.dataType

  private def asText(column: Attribute): AttributeReference = {
    val text = SchemaInternals.withoutCharVarchar(DataTypeUtils.fromAttributes(Seq(column))).head
    AttributeReference(column.name, text.dataType, column.nullable, text.metadata)(column.exprId, column.qualifier)
  }
}
