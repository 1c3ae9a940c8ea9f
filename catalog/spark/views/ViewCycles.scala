package org.apache.spark.sql.lakelog.views

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View => ViewPlan}
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.internals.seam.{View, Views}

/** Refuses a view that would be made of itself, if Spark 4.2 overlooks it: by an ALTER VIEW, in a subquery. */
private[lakelog] object ViewCycles {

  /** Checks a view that the statement under way gives another text: its names are those of the session as it is. */
  def check(names: Seq[String], view: View): Unit = {
    pathTo(names, PlanInternals.ofQuery(view.queryText)).foreach { path =>
      throw new AnalysisException("RECURSIVE_VIEW",
        Map(
          "viewIdent" -> written(names), "newPath" -> (names +: path).map(written).mkString(" -> ")))
    }
  }

  private def pathTo(names: Seq[String], plan: LogicalPlan): Option[Seq[Seq[String]]] = plan match {
    case view: ViewPlan if Views.name(view.desc) == names => Some(Seq(names))
    case view: ViewPlan => pathTo(names, view.child).map(Views.name(view.desc) +: _)
    case other => (other.children ++ other.subqueries).iterator.flatMap(pathTo(names, _)).nextOption()
  }

  private def written(names: Seq[String]): String = names.map(name => s"`${name.replace("`", "``")}`").mkString(".")
}
