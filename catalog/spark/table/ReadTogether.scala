package org.apache.spark.sql.lakelog.table

import scala.collection.mutable

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.wire

/**
 * The tables that one statement reads, all as they were at the same moment.
 *
 * Spark loads them one after the other. They get to know each other while the statement is optimised, before any of them
 * is read; the first one that is read asks Python for versions of all that stood at one moment. One table alone asks
 * nothing, and what a user wants of the past or inside of a transaction stands at a moment already.
 */
private[lakelog] final class ReadTogether {

  private val tables = mutable.LinkedHashMap.empty[Any, LakeTable]
  private var versions: Map[Any, Long] = Map.empty

  private def key(table: LakeTable): Any = (table.facts.location, table.facts.ownId, table.facts.version)

  def join(table: LakeTable): Unit = synchronized(tables.getOrElseUpdate(key(table), table))

  /** The filters of each scan, with the table's id. */
  private val scans = mutable.ArrayBuffer.empty[(String, Seq[Predicate])]

  /** Takes note of a scan that the statement has. */
  def reads(table: LakeTable, predicates: Seq[Predicate]): Unit = synchronized {
    scans += table.facts.ownId -> predicates
    ()
  }

  /** The filters of each scan of the table by the statement: all that it has read of it matches those of one of them. */
  def filters(table: LakeTable): Seq[Seq[Predicate]] = synchronized {
    scans.toSeq.collect { case (id, predicates) if id == table.facts.ownId => predicates }
  }

  /** The version to read, or the one that was loaded while that is not settled yet. */
  def versionIfSettled(table: LakeTable): Long = synchronized(versions.getOrElse(key(table), table.facts.version))

  /** The version to read of a table that has joined. It is the same however often it is asked for. */
  def version(table: LakeTable): Long = synchronized {
    if (!versions.contains(key(table))) settle(table)
    versions(key(table))
  }

  private def settle(asking: LakeTable): Unit = {
    val members = tables.values.toList
    val found =
      if (members.length == 1) members.map(_.facts.version)
      else {
        // One that is being read already cannot move any more.
        val reads = members.map(table => wire.TableRead(table.facts.reference, versions.getOrElse(key(table), -1L)))
        asking.access.ask(wire.ReadTogether(reads)).versions
      }
    versions = members.map(key).zip(found).toMap
  }
}

private[lakelog] object ReadTogether {

  /** The tables of each warehouse that the statement reads, by where its requests go. */
  private val slot = new ProcessState.Slot(() => mutable.Map.empty[AnyRef, ReadTogether])

  /**
   * What reads `table` together with it: the tables of the same warehouse in the statement that is being optimised, by
   * whichever of the catalogs' names it knows them.
   */
  def joined(table: LakeTable): ReadTogether = {
    val together =
      if (table.standsStill) new ReadTogether
      else ProcessState.ofStatement.map(_(slot)).map { warehouses =>
        warehouses.synchronized(warehouses.getOrElseUpdate(table.access.channel.source, new ReadTogether))
      }.getOrElse(new ReadTogether)
    together.join(table)
    together
  }

  /** The tables of the same warehouse in the statement that is being optimised, as far as it reads any. */
  def known(table: LakeTable): Option[ReadTogether] = ProcessState.ofStatement.map(_(slot)).flatMap { warehouses =>
    warehouses.synchronized(warehouses.get(table.access.channel.source))
  }
}
