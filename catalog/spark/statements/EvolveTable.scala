package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire

/** A change of how a table's new files are written. */
private[lakelog] final case class EvolveTable(
    changes: Seq[wire.TableChange], isDistributed: Boolean) extends TableStatement {

  override def run(table: LakeTable): Unit = {
    table.refuseOnRef("partitioning or order")
    if (isDistributed && table.facts.partitionFields.isEmpty) {
      throw Failures.invalid(
        s"${table.name} is not partitioned, so its rows cannot be distributed by partition: leave DISTRIBUTED BY PARTITION out.")
    }
    table.access.change(wire.AlterTable(
        wire.NamedObject(location = Some(table.facts.location)), changes = changes, ref = table.facts.ref))
  }
}
