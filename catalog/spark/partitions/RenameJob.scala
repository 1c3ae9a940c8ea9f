package org.apache.spark.sql.lakelog.partitions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, EqualNullSafe, Expression, Literal, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowIds}
import org.apache.spark.sql.lakelog.internals.files.{JobInternals, RowInternals}
import org.apache.spark.sql.lakelog.internals.plans.ConstraintInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{CompactGroup, CompactRows, TableWrite, WriteTasks}

/**
 * Gives the rows of a partition the values of another one: executors check them and write them anew, and Python commits. It
 * refuses values that are missing, and those that others are made of.
 */
private[lakelog] object RenameJob {

  def run(
      table: LakeTable, old: Map[String, wire.Scalar], `new`: Map[String, wire.Scalar], from: InternalRow,
      to: InternalRow): Unit = {
    val reference = table.facts.reference
    val (plan, files) = table.access.failures.table(table.access.ident)(
      table.access.channel.withFiles(wire.PlanRename(reference, old, `new`), table.facts.location))
    plan.columns.filter(_ => !files.isEmpty) match {
      case None => table.access.change(wire.RenamePartition(reference, old = old, `new` = `new`))
      case Some(columns) =>
        if (table.facts.own.computes) table.refuseUncomputed()
        val write = new TableWrite(table.access, reference, table.access.ask(wire.BeginWrite(reference)))
        val written = rewritten(table, files, write.filePrefix, changed(table, columns, from, to))
        try write.commit((version, begun) =>
            wire.RenamePartition(
              version, begun.token, old = old, `new` = `new`, write = Some(begun.write), files = Some(written)))
        catch {
          case failed: Throwable =>
            if (!write.mayHaveHappened) WriteTasks.deleteFiles(table, written)
            throw failed
        }
        table.access.wrote(table.facts.location, written)
    }
  }

  private def rewritten(
      table: LakeTable, files: PlannedFiles, filePrefix: String,
      rows: LogicalPlan => LogicalPlan): Seq[wire.DataFile] = {
    val groups = files.indices.map(i => CompactGroup(files.at(Array(i)), 0, 0, 0, tasks = 1, spread = false))
    val text = s"lakelog rename of a partition of ${table.name}: ${files.length} files"
    JobInternals.refusing {
      CompactRows.write(table, groups, filePrefix, table.facts.targetFileBytes, text, Some(rows)).flatten
    }
  }

  /** The rows of the partition, with other values. They are new ones: the ids of those that were there end with them. */
  private def changed(
      table: LakeTable, columns: Seq[String], from: InternalRow, to: InternalRow): LogicalPlan => LogicalPlan =
    plan => {
      val fields = table.partitionSchema().fields
      def literal(row: InternalRow, i: Int): Expression =
        Literal(if (row.isNullAt(i)) null else row.get(i, fields(i).dataType), fields(i).dataType)
      val isThere = table.facts.partitionFields.zipWithIndex.map { case (field, i) =>
        EqualNullSafe(RowInternals.transformed(field.transform, field.column, column(plan, _)), literal(from, i))
      }
      val places = table.facts.partitionFields.map(_.column).zipWithIndex.collect {
        case (Seq(name), i) if columns.contains(name) => name -> i
      }.toMap
      val ids = RowIds.own.keys.map(table.physical.metadata.name).toSet
      val values = plan.output.map { each =>
        if (ids(each.name)) Alias(Literal(null, each.dataType), each.name)()
        else places.get(each.name).fold[NamedExpression](each)(i =>
          Alias(literal(to, i), each.name)())
      }
      ConstraintInternals.held(table, Project(values, Filter(isThere.reduce[Expression](And(_, _)), plan)))
    }

  private def column(plan: LogicalPlan, name: String): Attribute = plan.output.find(_.name == name).get
}
