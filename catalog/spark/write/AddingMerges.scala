package org.apache.spark.sql.lakelog.write

import scala.collection.mutable

import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * The tables to which a MERGE of the statement only adds rows. To Spark it is an append, and only newer ones say at its
 * commit that it was a MERGE. For an older one, it is noted here when its plan is seen.
 */
private[lakelog] object AddingMerges {

  private val slot = new ProcessState.Slot(() => mutable.Set.empty[String])

  def add(table: LakeTable): Unit = ProcessState.ofStatement.foreach { kept =>
    val tables = kept(slot)
    tables.synchronized(tables.add(table.facts.ownId)): Unit
  }

  def contains(table: LakeTable): Boolean = ProcessState.ofStatement.map(_(slot)).exists { tables =>
    tables.synchronized(tables.contains(table.facts.ownId))
  }
}
