package org.apache.spark.sql.lakelog.procedures

import scala.annotation.tailrec

import org.apache.spark.sql.lakelog.internals.LakelogFailure
import org.apache.spark.sql.lakelog.table.Channel
import org.apache.spark.sql.lakelog.wire

/** The whole of a call of a procedure that asks for jobs. */
private[lakelog] object CallWithJobs {

  /**
   * Runs a call to its end, and returns the rows of its result. If the Python process has ended meanwhile, the call is made
   * again, and goes on with what it had committed.
   */
  def run(channel: Channel, call: wire.ProcedureRequest, jobs: ProcedureJobs): Seq[Seq[wire.FreeJson]] =
    run(channel, call, jobs, BeginsMax)

  @tailrec
  private def run(
      channel: Channel, call: wire.ProcedureRequest, jobs: ProcedureJobs, left: Int): Seq[Seq[wire.FreeJson]] = {
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
      channel: Channel, step: wire.CallStep, jobs: ProcedureJobs,
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

  private val BeginsMax = 4
  private val Lost = "call-lost"
  private val Failed = "job-failed"
}
