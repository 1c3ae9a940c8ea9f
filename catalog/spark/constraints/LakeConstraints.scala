package org.apache.spark.sql.lakelog.constraints

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableChange}
import org.apache.spark.sql.lakelog.catalogs.{CatalogAccess, LakeCatalogs}
import org.apache.spark.sql.lakelog.internals.{ErrorInternals, LakelogFailure}
import org.apache.spark.sql.lakelog.internals.plans.ConstraintInternals
import org.apache.spark.sql.lakelog.internals.seam.{Constraint, PrimaryKey, Tables}
import org.apache.spark.sql.lakelog.refs.SessionBranch
import org.apache.spark.sql.lakelog.table.{LakeTable, TableVersion}
import org.apache.spark.sql.lakelog.wire

/** The catalog's part in constraints: what ALTER TABLE may add, and for which version of the table that was made sure. */
private[lakelog] trait LakeConstraints extends CatalogAccess {

  /** Constraints of a table to be, whose names Spark does not compare. */
  private[lakelog] def checkNew(constraints: Array[Constraint]): Unit =
    constraints.groupBy(_.name.toLowerCase(java.util.Locale.ROOT)).values.find(_.length > 1).foreach { same =>
      throw ErrorInternals.constraintExists(same.head.name)
    }

  /**
   * The version of the table, if any, all of whose rows Spark has held against a CHECK that the changes add.
   *
   * Spark has read it before it asks for the change, so that others may have added rows meanwhile: Python sees to that.
   */
  private[lakelog] def lookedAt(table: LakeTable, changes: Seq[TableChange]): Option[wire.LoadedTable] = {
    ConstraintInternals.refuseOfView()
    Tables.checkConstraints(table, changes)
    val added = Tables.added(changes)
    val keys = (table.constraints.toSeq ++ added.map(_._1)).collect { case key: PrimaryKey => key }
    if (keys.length > 1 && added.exists(_._1.isInstanceOf[PrimaryKey])) {
      throw ErrorInternals.multiplePrimaryKeys(keys.flatMap(_.columns.map(_.fieldNames.mkString("."))))
    }
    added.flatMap(_._2).headOption.map { version =>
      SessionBranch.refuseLook(table)
      TableVersion.parse(version).referenceIn(table.facts)
    }
  }

  /** Makes columns NOT NULL, along with other changes: by statistics if they prove it, else by a look at all rows. */
  private[lakelog] def requireValues(
      ident: Identifier, table: LakeTable, changes: Seq[TableChange], columns: Seq[Seq[String]]): Table =
    failingAs(ident) {
      try alter(ident, changes, None)
      catch {
        case unproven: LakelogFailure if unproven.kind == "rows-unproven" =>
          SessionBranch.refuseLook(table)
          val seen = ConstraintInternals.requireValues(this, ident, table, columns)
          alter(ident, changes, Some(seen.facts.reference))
      }
    }
}

private[lakelog] object LakeConstraints {
  def of(plugin: CatalogPlugin): Option[LakeConstraints] =
    LakeCatalogs.of(plugin).collect { case lake: LakeConstraints => lake }
}
