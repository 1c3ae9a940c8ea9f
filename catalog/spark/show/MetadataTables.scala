package org.apache.spark.sql.lakelog.show

import java.util.Locale

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.{Failures, LakelogFailure}
import org.apache.spark.sql.lakelog.internals.seam.Relation
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.read.MetadataTable
import org.apache.spark.sql.lakelog.refs.RefTables
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.words.ForeignWords

/**
 * Names like `lake.shop.orders.files`: the metadata table `files` of the table `lake.shop.orders`, if there is no table
 * `files` in a namespace `shop.orders`. What users have made always comes first.
 */
private[lakelog] object MetadataTables {

  private val Names = Set("detail", "files", "history", "log", "manifests", "partitions", "refs", "snapshots")

  /**
   * What `named` gives; if there is nothing of that name, the metadata table of the table that `load` gives, if any. One
   * that other formats have, or that is misspelled, is refused by what there is instead.
   */
  def orElse(ident: Identifier, load: Identifier => Relation)(named: => Relation): Relation =
    try named
    catch {
      case missing: LakelogFailure if CatalogNames.Missing(missing.kind) && ident.namespace.nonEmpty && !mayBe(ident) =>
        ForeignWords.insteadOfTable(ident.name, Names).foreach { instead =>
          RefTables.ifThere(load(CatalogNames.tableOf(ident))).collect { case table: LakeTable =>
            throw Failures.invalid(
              s"lakelog's tables have no metadata table ${ident.name}, which ${table.name} would have: $instead.")
          }
        }
        throw missing
      case missing: LakelogFailure if CatalogNames.Missing(missing.kind) && mayBe(ident) =>
        try of(load(CatalogNames.tableOf(ident)), ident.name.toLowerCase(Locale.ROOT)).getOrElse(throw missing)
        catch {
          case none: LakelogFailure if CatalogNames.Missing(none.kind) => throw missing
        }
    }

  private def mayBe(ident: Identifier): Boolean =
    ident.namespace.nonEmpty && Names(ident.name.toLowerCase(Locale.ROOT))

  private def of(found: Relation, name: String): Option[Relation] = Some(found).collect { case named: LakeTable =>
    val table = named.itself
    new MetadataTable(table, table.access.channel.ask(wire.DescribeMetadataTable(table.facts.reference, name)))
  }
}
