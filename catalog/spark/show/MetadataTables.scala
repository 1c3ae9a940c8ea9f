package org.apache.spark.sql.lakelog

import java.util.Locale

import org.apache.spark.sql.connector.catalog.{Identifier, Relation}

/**
 * Names like `lake.shop.orders.files`: the metadata table `files` of the table `lake.shop.orders`, where there is no table
 * `files` in a namespace `shop.orders`. What users have made always comes first.
 */
private[lakelog] object MetadataTables {

  private val Names = Set("detail", "files", "history", "log", "manifests", "partitions", "refs", "snapshots")

  /** Kinds of failures that say that there is nothing of a name. */
  val Missing: Set[String] = Set("no-such-table", "no-such-namespace", "log-sealed")

  /**
   * What `named` gives; where there is nothing of that name, the metadata table of the table that `load` gives, if any. One
   * that other formats have, or that is misspelled, is refused by what there is instead.
   */
  def orElse(ident: Identifier, load: Identifier => Relation)(named: => Relation): Relation =
    try named
    catch {
      case missing: LakelogFailure if Missing(missing.kind) && ident.namespace.nonEmpty && !mayBe(ident) =>
        ForeignWords.insteadOfTable(ident.name, Names).foreach { instead =>
          RefTables.ifThere(load(tableOf(ident))).collect { case table: LakeTable =>
            throw Failures.invalid(
              s"lakelog's tables have no metadata table ${ident.name}, which ${table.name} would have: $instead.")
          }
        }
        throw missing
      case missing: LakelogFailure if Missing(missing.kind) && mayBe(ident) =>
        try of(load(tableOf(ident)), ident.name.toLowerCase(Locale.ROOT)).getOrElse(throw missing)
        catch {
          case none: LakelogFailure if Missing(none.kind) => throw missing
        }
    }

  private def mayBe(ident: Identifier): Boolean =
    ident.namespace.nonEmpty && Names(ident.name.toLowerCase(Locale.ROOT))

  /** What stands before the last dot. */
  def tableOf(ident: Identifier): Identifier = Identifier.of(ident.namespace.init, ident.namespace.last)

  private def of(found: Relation, name: String): Option[Relation] = Some(found).collect { case named: LakeTable =>
    val table = named.itself
    new MetadataTable(table, table.access.channel.ask(wire.DescribeMetadataTable(table.facts.reference, name)))
  }
}
