package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.SparkException
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.table.Channel
import org.apache.spark.sql.lakelog.wire

/** A call of a procedure that asks for jobs while it runs: what it is known by in the Python process that runs it. */
private[lakelog] final class GoingCall(val channel: Channel, id: String) {

  /** The files that its job is about, of a table at that place. */
  def files(location: String): PlannedFiles = channel.files(wire.CallFiles(id), location)

  /** What it asks for next, if a job has come to this. */
  def goOn(came: Either[Throwable, wire.AnyResult]): wire.CallStep = came match {
    case Right(result) => channel.change(wire.GoOnCall(id, result = Some(result)))
    case Left(failed) =>
      channel.change(wire.GoOnCall(id, failed = Some(GoingCall.text(failed)), cancelled = GoingCall.isCancelled(failed)))
  }
}

private[lakelog] object GoingCall {

  private def text(failed: Throwable): String = Option(failed.getMessage).getOrElse(failed.toString)

  /** What ends a call, rather than have it do without the job: a user, or a JVM that cannot go on. */
  private def isCancelled(failed: Throwable): Boolean = failed match {
    case _: InterruptedException => true
    case cancelled: SparkException => cancelled.getCondition == "SPARK_JOB_CANCELLED"
    case _: Exception => false
    case _ => true
  }
}
