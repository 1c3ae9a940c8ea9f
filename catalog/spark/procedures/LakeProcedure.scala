package org.apache.spark.sql.lakelog.procedures

import java.util.{Collections, Iterator => JIterator, Locale}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.procedures.{BoundProcedure, ProcedureParameter, UnboundProcedure}
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DayTimeIntervalType, StructField, StructType}

/**
 * Any of the procedures: what it is called and takes was declared by Python, which also runs it.
 *
 * It is no `SimpleProcedure`, although that would let Spark describe the parameters by itself: Spark takes one for bound
 * at once, and fails on arguments that it has not brought into their order yet. So the description has them.
 */
private[lakelog] final class LakeProcedure(
    declaration: ProcedureDeclaration, failures: Failures, call: LakeProcedure.Call)
  extends UnboundProcedure {

  override def name: String = declaration.name

  override def description: String = declaration.description + "\n" + declaration.signature

  /** Spark casts one kind of interval to no other, but all of them are the same number here: so any will do. */
  override def bind(arguments: StructType): BoundProcedure = {
    val types = arguments.fields.zipWithIndex.collect {
      case (StructField(name, interval: DayTimeIntervalType, _, metadata), _)
          if metadata.contains(ProcedureParameter.BY_NAME_METADATA_KEY) => name.toLowerCase(Locale.ROOT) -> interval
      case (StructField(_, interval: DayTimeIntervalType, _, _), i) if i < declaration.parameters.length =>
        declaration.parameters(i).name -> interval
    }.toMap
    new BoundLakeProcedure(declaration.withIntervals(types), failures, call)
  }
}

private[lakelog] object LakeProcedure {

  /** Runs a procedure and returns the rows of its result, each a list of values. */
  type Call = (ProcedureDeclaration, wire.FreeJson) => Seq[Seq[wire.FreeJson]]
}

private final class BoundLakeProcedure(
    declaration: ProcedureDeclaration, failures: Failures, run: LakeProcedure.Call)
  extends BoundProcedure {

  private val input = StructType(declaration.parameters.map(p => StructField(p.name, p.dataType)))

  override def name: String = declaration.name

  override def description: String = declaration.description

  override def parameters: Array[ProcedureParameter] = declaration.parameters

  override def isDeterministic: Boolean = false

  override def call(arguments: InternalRow): JIterator[Scan] = {
    val answered = failures.procedure(run(declaration, wire.JsonValues.of(arguments, input)))
    val rows = answered.map(wire.JsonValues.toRow(_, declaration.result))
    if (declaration.result.isEmpty) Collections.emptyIterator()
    else Collections.singleton[Scan](new ResultRows(rows.toArray, declaration.result)).iterator
  }
}

private final class ResultRows(override val rows: Array[InternalRow], schema: StructType) extends LocalScan {
  override def readSchema(): StructType = schema
}
