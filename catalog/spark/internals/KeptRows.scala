package org.apache.spark.sql.lakelog

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{SparkSession => Session}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RowLevelWrite, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec

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
      case write: RowLevelWrite => SourcesOnce.target(write).map(_.storesToFree()).filter(_.nonEmpty).toSeq
          .map(StoringExec(planLater(write), _))
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

/** Runs a statement, and frees what it has stored when it has ended: Spark aborts no write that has not begun. */
private[lakelog] case class StoringExec(child: SparkPlan, stores: Seq[RowStore])
  extends V2CommandExec with UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def run(): Seq[InternalRow] =
    try child.executeCollect().toSeq
    finally stores.foreach(_.free())

  override protected def withNewChildInternal(newChild: SparkPlan): StoringExec = copy(child = newChild)
}

/**
 * Rows that were computed once, in the block managers of the executors. Where one of these is lost, the statement fails:
 * rows that are computed again may be other ones. Tasks get it with parts of the plan, and do not look at it.
 */
private[lakelog] final class RowStore extends Serializable {

  @transient private var stored: Option[RDD[InternalRow]] = None

  /** The stored rows; of the first caller all of `rows`, which are computed before this returns. */
  def rows(rows: => RDD[InternalRow]): RDD[InternalRow] = synchronized {
    stored.getOrElse {
      val all = rows.localCheckpoint()
      all.sparkContext.runJob(all, (partition: Iterator[InternalRow]) => partition.foreach(_ => ()))
      stored = Some(all)
      all
    }
  }

  /** Gives the memory back, once the statement has ended. */
  def free(): Unit = synchronized {
    // The RDD's own method warns that its rows cannot be computed again.
    stored.foreach(rows => rows.sparkContext.unpersistRDD(rows.id, blocking = false))
  }

  override def toString: String = "once"
}
