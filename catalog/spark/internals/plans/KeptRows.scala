package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.{Partition, SparkContext, SparkEnv, SparkException, TaskContext}
import org.apache.spark.rdd.{BlockRDD, BlockRDDPartition, RDD}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.{SparkSession => Session}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, SQLExecution, UnaryExecNode}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.storage.{BlockId, RDDBlockId, StorageLevel}

/**
 * The rows of `child` by these columns, computed once for the whole statement.
 *
 * With a store, several places of a plan may want them: all get the rows that the first one has computed. Without one, they
 * are for one place, and Spark makes no runtime filter of them, for which it would compute them a second time.
 */
private[lakelog] final case class KeptRows(columns: Seq[Attribute], child: LogicalPlan, store: Option[RowStore])
  extends UnaryNode {

  override def output: Seq[Attribute] = columns

  /** Rows that are stored are the same in all places, by whatever they were made. */
  override def deterministic: Boolean = store.isDefined || super.deterministic

  override def maxRows: Option[Long] = child.maxRows

  override protected def withNewChildInternal(newChild: LogicalPlan): KeptRows = copy(child = newChild)
}

private[lakelog] object KeptRows extends (Session => SparkStrategy) {

  override def apply(session: Session): SparkStrategy = new SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case KeptRows(columns, child, store) => Seq(KeptRowsExec(columns, planLater(child), store))
      case _ => Nil
    }
  }
}

private[lakelog] final case class KeptRowsExec(columns: Seq[Attribute], child: SparkPlan, store: Option[RowStore])
  extends UnaryExecNode {

  override def output: Seq[Attribute] = columns

  override protected def doExecute(): RDD[InternalRow] = store.fold(rows)(_.rows(rows))

  private def rows: RDD[InternalRow] = {
    val (wanted, there, copies) = (columns, child.output, store.isDefined)
    child.execute().mapPartitionsWithIndexInternal { (index, rows) =>
      val project = UnsafeProjection.create(wanted, there)
      project.initialize(index)
      rows.map(row => if (copies) project(row).copy() else project(row))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): KeptRowsExec = copy(child = newChild)
}

/**
 * Rows that were computed once, in the block managers of the executors. If one of these is lost, the statement fails because
 * rows that are computed again may be other ones. Tasks get it with parts of the plan, and do not look at it.
 */
private[lakelog] final class RowStore extends Serializable {

  @transient private var stored: Option[RDD[InternalRow]] = None

  /** The stored rows; of the first caller all of `rows`, which are computed before this returns. */
  def rows(rows: => RDD[InternalRow]): RDD[InternalRow] = synchronized {
    stored.getOrElse {
      val all = StoredRows.of(rows)
      stored = Some(all)
      all
    }
  }

  override def toString: String = "once"
}

/**
 * The rows of these blocks, one for each partition of the `source`. Each block is that of the attempt whose success the
 * driver has seen. Two attempts at one task may both end, on two executors, with other rows.
 */
private final class StoredRows(@transient val source: RDD[InternalRow], blocks: Array[BlockId])
  extends BlockRDD[InternalRow](source.sparkContext, blocks) {

  override def compute(split: Partition, task: TaskContext): Iterator[InternalRow] = {
    val block = split.asInstanceOf[BlockRDDPartition].blockId
    SparkEnv.get.blockManager.get[InternalRow](block).fold(throw new SparkException(
        "Rows of the statement's source that were stored are lost, with the executor that had them, and may be other ones if " +
          "they are computed again: run the statement again."))(_.data.asInstanceOf[Iterator[InternalRow]])
  }
}

private object StoredRows {

  /** Computes and stores rows. The memory is given back once the statement has ended, however that ends. */
  def of(rows: RDD[InternalRow]): StoredRows = {
    val (context, id) = (rows.sparkContext, rows.id)
    val statement = Option(context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).map(_.toLong)
    statement.foreach(execution => context.addSparkListener(new FreedAtEnd(context, execution, id)))
    context.persistRDD(rows)
    // If the end is not seen, as Spark drops events when it has too many.
    context.cleaner.foreach(_.registerRDDForCleanup(rows))
    try new StoredRows(rows, context.runJob(rows, stored(id) _))
    // A statement may have failed while another of its threads was still storing these.
    finally if (statement.exists(SQLExecution.getQueryExecution(_) == null)) context.unpersistRDD(id, blocking = false)
  }

  private def stored(id: Int)(task: TaskContext, rows: Iterator[InternalRow]): BlockId = {
    val block = RDDBlockId(id, (task.taskAttemptId() % Int.MaxValue).toInt)
    if (!SparkEnv.get.blockManager.putIterator(block, rows, StorageLevel.MEMORY_AND_DISK))
      throw new SparkException("Rows of the statement's source cannot be stored, in memory or on disk.")
    block
  }
}

/** Removes the blocks of an RDD when a statement has ended. */
private final class FreedAtEnd(context: SparkContext, execution: Long, rdd: Int) extends SparkListener {
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if end.executionId == execution =>
      context.removeSparkListener(this)
      context.unpersistRDD(rdd, blocking = false)
    case _ =>
  }
}
