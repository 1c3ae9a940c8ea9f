package org.apache.spark.sql.lakelog.rows

import java.util.Locale

import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations
import org.apache.spark.sql.connector.write.{RowLevelOperation, RowLevelOperationBuilder, RowLevelOperationInfo}
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.seam.{Check, Tables}
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.table.{LakeTable, MetadataColumns}

/** A table's part in DELETE, UPDATE and MERGE of single rows: which of the two ways they go. */
private[lakelog] trait LakeRows extends SupportsRowLevelOperations { this: LakeTable =>

  override def newRowLevelOperationBuilder(info: RowLevelOperationInfo): RowLevelOperationBuilder = {
    refuseUnknown(info.options, "write", Set.empty)
    refuseStreaming()
    refuseTag()
    schema.fieldNames.find(MetadataColumns.isOfSpark).foreach { column =>
      throw Failures.unsupported(
        s"${info.command} of $name cannot be carried out: Spark itself adds a column $column to the rows that such a " +
          s"statement changes. Rename the table's column first: ALTER TABLE $name RENAME COLUMN $column TO …")
    }
    // What is deleted or copied has its values already.
    if (info.command != Command.DELETE) {
      refuseUncomputed()
      if (makesValues && !Tables.showMadeValues) throw Failures.unsupported(
        s"${info.command} of $name needs Spark 4.1 or newer, as the table has generated or identity columns.")
      if (makesValues && !EntranceNames.hasExtension) throw Failures.unsupported(
        s"${info.command} of $name needs lakelog's session extension, as the table has generated or identity columns: start " +
          s"the session with spark.sql.extensions=${EntranceNames.Extensions}.")
    }
    val table = written
    () => LakeRows.operation(table, info.command)
  }
}

private[lakelog] object LakeRows {

  private def operation(table: LakeTable, command: Command): RowLevelOperation =
    table.facts.writeModes(command.name.toLowerCase(Locale.ROOT)) match {
      case "merge-on-read" if !isHeldAgainstDeletions(table, command) => new MergeOnRead(table, command)
      case _ => new CopyOnWrite(table, command)
    }

  /** Whether Spark holds CHECKs against rows that go: what mends that is part of the session extension. */
  private def isHeldAgainstDeletions(table: LakeTable, command: Command): Boolean =
    command == Command.MERGE && table.constraints.exists(_.isInstanceOf[Check]) && !EntranceNames.hasExtension
}
