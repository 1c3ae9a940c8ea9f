package org.apache.spark.sql.lakelog.internals.files

import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.lakelog.expressions.PartitionTransform
import org.apache.spark.sql.types.DataType

/** A partition transform as an expression, with which executors compute the partition of each row they write. */
private[lakelog] final case class TransformExpression(transform: PartitionTransform, child: Expression)
  extends UnaryExpression with CodegenFallback {

  @transient private lazy val function = transform.function(child.dataType)

  override def dataType: DataType = transform.resultType(child.dataType)

  override def nullable: Boolean = true

  override protected def nullSafeEval(value: Any): Any = function(value)

  override protected def withNewChildInternal(newChild: Expression): TransformExpression = copy(child = newChild)
}
