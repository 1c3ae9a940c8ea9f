package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * Something that replaces parts of a plan before Spark resolves any of it.
 *
 * It also sees what an IDENTIFIER clause becomes, which happens only while names are resolved.
 */
private[lakelog] trait EarlyRewrite extends (SparkSession => Rule[LogicalPlan]) {

  /** What to replace; a node that stays as it is may also be given back. */
  protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan]

  private val seen = TreeNodeTag[Unit](s"lakelog.${getClass.getSimpleName}")

  final override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = EarlyRewrite.this.getClass.getName
    override def apply(plan: LogicalPlan): LogicalPlan = rewritten(plan)
  }

  private def rewritten(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsDown(rewrite.orElse {
    case named: PlanWithUnresolvedIdentifier if named.getTagValue(seen).isEmpty =>
      val later = named.copy(planBuilder = (name, children) => rewritten(named.planBuilder(name, children)))
      later.copyTagsFrom(named)
      later.setTagValue(seen, ())
      later
  })
}
