package org.apache.spark.sql.lakelog.internals.plans

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Table, TableCatalog}
import org.apache.spark.sql.execution.{CacheManager, CachedData}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.catalogs.LakeCatalogs
import org.apache.spark.sql.lakelog.internals.seam.Caches
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * What Spark has cached of a catalog's tables, for what changes them without Spark's knowledge: a cached table is looked up
 * by its name before the catalog is asked for it.
 */
private[lakelog] object CachedTables {

  private def session = SparkSession.active

  private def manager = session.sharedState.cacheManager

  /** Forgets all of it, in this session. */
  def drop(catalog: CatalogPlugin): Unit =
    plans.filter(relationsIn(_).exists(_.catalog.flatMap(LakeCatalogs.of).contains(catalog)))
      .foreach(manager.uncacheQuery(session, _, cascade = true, blocking = false))

  /** Refreshes what is cached of the newest version of each table, as Spark does after its own writes. */
  def refresh(catalog: CatalogPlugin): Unit = {
    val names = for {
      plan <- plans
      relation <- relationsIn(plan) if relation.catalog.exists(_.name == catalog.name)
      ident <- relation.identifier
    } yield (catalog.name +: ident.namespace.toSeq :+ ident.name) -> relation
    names.toMap.foreach { case (name, relation) => Caches.refresh(session, relation, name) }
  }

  /**
   * Refreshes what is cached of `warehouse` and has become old, after a change in it: Spark itself looks
   * for the name that was written only, and a table has others, in other catalogs and by its place. It costs a question
   * for each table that is cached, and never fails: what cannot be looked up is forgotten.
   */
  def refreshOld(warehouse: AnyRef): Unit = for {
    plan <- plans
    relation <- relationsIn(plan) if !Caches.isOfPast(relation)
    table <- Some(relation.table).collect { case lake: LakeTable if lake.access.channel.source eq warehouse => lake }
    catalog <- relation.catalog
    ident <- relation.identifier
  } {
    try catalog match {
        case tables: TableCatalog if isSame(tables.loadTable(ident), table) =>
        case _ =>
          val name = catalog.name +: ident.namespace.toSeq :+ ident.name
          Caches.refresh(session, relation, name)
      }
    catch { case NonFatal(_) => manager.uncacheQuery(session, plan, cascade = true, blocking = false) }
  }

  private def isSame(newest: Table, cached: LakeTable): Boolean = newest match {
    case lake: LakeTable => lake.facts.ownId == cached.facts.ownId && lake.facts.version == cached.facts.version
    case _ => false
  }

  /** Spark has no public method for the plans that it has cached. */
  private def plans: Iterable[LogicalPlan] = {
    val entries = classOf[CacheManager].getDeclaredMethod("cachedData")
    entries.setAccessible(true)
    entries.invoke(manager).asInstanceOf[Iterable[CachedData]].map(_.plan)
  }

  private def relationsIn(plan: LogicalPlan): Seq[DataSourceV2Relation] =
    plan.collect { case relation: DataSourceV2Relation => relation }
}
