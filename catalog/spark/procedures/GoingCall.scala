package org.apache.spark.sql.lakelog

import scala.annotation.tailrec

import org.apache.spark.SparkException

/** A call of a procedure that asks for jobs while it runs: what it is known by in the Python process that runs it. */
private[lakelog] final class GoingCall(val channel: Channel, id: String) {

  /** The files that its job is about, of a table at that place. */
  def files(location: String): PlannedFiles = channel.files(wire.CallFiles(id), location)

  /** What it asks for next, where a job has come to this. */
  def goOn(came: Either[Throwable, wire.AnyResult]): wire.Step = came match {
    case Right(result) => channel.change(wire.GoOnCall(id, result = Some(result)))
    case Left(failed) =>
      channel.change(wire.GoOnCall(id, failed = Some(GoingCall.text(failed)), cancelled = GoingCall.isCancelled(failed)))
  }
}

private[lakelog] object GoingCall {

  /**
   * Runs a call to its end, and returns the rows of its result. Where the Python process has ended meanwhile, the call is made
   * again, and goes on with what it had committed.
   */
  def run(channel: Channel, call: wire.OfProcedure, jobs: ProcedureJobs): Seq[Seq[wire.FreeJson]] =
    run(channel, call, jobs, BeginsMax)

  @tailrec
  private def run(
      channel: Channel, call: wire.OfProcedure, jobs: ProcedureJobs, left: Int): Seq[Seq[wire.FreeJson]] = {
    val done =
      try Some(steps(channel, channel.change(wire.BeginCall(call)), jobs, None))
      catch { case lost: LakelogFailure if lost.kind == Lost && left > 1 => None }
    done match {
      case Some(rows) => rows
      case None => run(channel, call, jobs, left - 1)
    }
  }

  /** `failed` is the job that has failed last: Python may do without. */
  @tailrec
  private def steps(
      channel: Channel, step: wire.Step, jobs: ProcedureJobs,
      failed: Option[Throwable]): Seq[Seq[wire.FreeJson]] = step.rows match {
    case Some(rows) => rows
    case None =>
      val call = new GoingCall(channel, step.going.get)
      val came =
        try Right(jobs.run(step.job.get, Some(call)))
        catch { case broken: Throwable => Left(broken) }
      val next =
        try call.goOn(came)
        catch {
          // Spark's own error says more than what Python has learned of it.
          case ended: LakelogFailure if ended.kind == Failed => throw came.left.getOrElse(failed.getOrElse(ended))
        }
      steps(channel, next, jobs, came.left.toOption.orElse(failed))
  }

  private def text(failed: Throwable): String = Option(failed.getMessage).getOrElse(failed.toString)

  /** What ends a call, rather than have it do without the job: a user, or a JVM that cannot go on. */
  private def isCancelled(failed: Throwable): Boolean = failed match {
    case _: InterruptedException => true
    case cancelled: SparkException => cancelled.getCondition == "SPARK_JOB_CANCELLED"
    case _: Exception => false
    case _ => true
  }

  private val BeginsMax = 4
  private val Lost = "call-lost"
  private val Failed = "job-failed"
}
