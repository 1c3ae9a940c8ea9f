// Written by scripts/wire from lakelog.spark.requests.procedures: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** How all procedures are declared. */
private[lakelog] final case class ListProcedures()
  extends Request[Procedures]("procedures") {
  override def members: Members = List()
  override def answer(json: JObject): Procedures = Procedures.of(json)
}

private[lakelog] object ListProcedures extends Companion[ListProcedures] {
  override def of(json: JObject): ListProcedures = ListProcedures()
}

/** `type` and `default` are in Spark's SQL. */
private[lakelog] final case class DeclaredParameter(
    name: String,
    `type`: String,
    default: Option[String],
    comment: String)
  extends Message {
  override def members: Members = List(
    "name" -> put(name),
    "type" -> put(`type`),
    "default" -> putOrNull(default),
    "comment" -> put(comment))
}

private[lakelog] object DeclaredParameter extends Companion[DeclaredParameter] {
  override def of(json: JObject): DeclaredParameter = DeclaredParameter(
    take[String](json, "name"),
    take[String](json, "type"),
    takeIfAny[String](json, "default"),
    take[String](json, "comment"))
}

/** A column of the result. */
private[lakelog] final case class DeclaredColumn(name: String, `type`: String, comment: String)
  extends Message {
  override def members: Members = List("name" -> put(name), "type" -> put(`type`), "comment" -> put(comment))
}

private[lakelog] object DeclaredColumn extends Companion[DeclaredColumn] {
  override def of(json: JObject): DeclaredColumn = DeclaredColumn(
    take[String](json, "name"),
    take[String](json, "type"),
    take[String](json, "comment"))
}

/**
 * `changes`: it may be retried by a token only; `job`: Spark has to work on data first; `asks`: it asks Spark for jobs
 * while it runs, and may be run again wherever it was stopped; `rows`: it changes rows that readers of a table see.
 * `session` says what it does with the session's transaction: `begins`, `commits`, `rolls-back` or nothing.
 */
private[lakelog] final case class DeclaredProcedure(
    name: String,
    description: String,
    parameters: Seq[DeclaredParameter],
    columns: Seq[DeclaredColumn],
    changes: Boolean,
    session: Option[String],
    inTransaction: Boolean,
    job: Boolean,
    asks: Boolean = false,
    rows: Boolean = false)
  extends Message {
  override def members: Members = List(
    "name" -> put(name),
    "description" -> put(description),
    "parameters" -> put(parameters),
    "columns" -> put(columns),
    "changes" -> put(changes),
    "session" -> putOrNull(session),
    "in_transaction" -> put(inTransaction),
    "job" -> put(job),
    "asks" -> putUnless(asks)(false),
    "rows" -> putUnless(rows)(false))
}

private[lakelog] object DeclaredProcedure extends Companion[DeclaredProcedure] {
  override def of(json: JObject): DeclaredProcedure = DeclaredProcedure(
    take[String](json, "name"),
    take[String](json, "description"),
    take[Seq[DeclaredParameter]](json, "parameters"),
    take[Seq[DeclaredColumn]](json, "columns"),
    take[Boolean](json, "changes"),
    takeIfAny[String](json, "session"),
    take[Boolean](json, "in_transaction"),
    take[Boolean](json, "job"),
    takeIfAny[Boolean](json, "asks").getOrElse(false),
    takeIfAny[Boolean](json, "rows").getOrElse(false))
}

private[lakelog] final case class Procedures(procedures: Seq[DeclaredProcedure])
  extends Message {
  override def members: Members = List("procedures" -> put(procedures))
}

private[lakelog] object Procedures extends Companion[Procedures] {
  override def of(json: JObject): Procedures = Procedures(take[Seq[DeclaredProcedure]](json, "procedures"))
}

/** About a call of a procedure, whose arguments the adapter has checked and cast. */
private[lakelog] final case class OfProcedure(
    procedure: String,
    arguments: FreeJson,
    catalogName: String,
    currentNamespace: Seq[String])
  extends Message {
  override def members: Members = List(
    "procedure" -> put(procedure),
    "arguments" -> put(arguments),
    "catalog_name" -> put(catalogName),
    "current_namespace" -> put(currentNamespace))
}

private[lakelog] object OfProcedure extends Companion[OfProcedure] {
  override def of(json: JObject): OfProcedure = OfProcedure(
    take[String](json, "procedure"),
    take[FreeJson](json, "arguments"),
    take[String](json, "catalog_name"),
    take[Seq[String]](json, "current_namespace"))
}

/** The token of a call that is about to be made, if it needs one. */
private[lakelog] final case class CallToken(call: OfProcedure)
  extends Request[TokenOfCall]("call_token") {
  override def members: Members = call.members
  override def answer(json: JObject): TokenOfCall = TokenOfCall.of(json)
}

private[lakelog] object CallToken extends Companion[CallToken] {
  override def of(json: JObject): CallToken = CallToken(OfProcedure.of(json))
}

private[lakelog] final case class TokenOfCall(token: Option[Token] = None)
  extends Message {
  override def members: Members = List("token" -> putOrNull(token))
}

private[lakelog] object TokenOfCall extends Companion[TokenOfCall] {
  override def of(json: JObject): TokenOfCall = TokenOfCall(takeIfAny[Token](json, "token"))
}

/** The job that Spark has to run before the call; `result` is what came of the one before. */
private[lakelog] final case class CallPrepare(call: OfProcedure, result: Option[AnyResult] = None)
  extends Request[Job]("call_prepare") {
  override def members: Members = call.members ++ List("result" -> putIfAny(result))
  override def answer(json: JObject): Job = Job.of(json)
}

private[lakelog] object CallPrepare extends Companion[CallPrepare] {
  override def of(json: JObject): CallPrepare = CallPrepare(OfProcedure.of(json), takeIfAny[AnyResult](json, "result"))
}

/** `again`: there may be another one after this, so it is asked for once more. None: nothing is left to be done. */
private[lakelog] final case class Job(job: Option[AnyJob], again: Boolean = false)
  extends Message {
  override def members: Members = List("job" -> putOrNull(job), "again" -> putUnless(again)(false))
}

private[lakelog] object Job extends Companion[Job] {
  override def of(json: JObject): Job = Job(
    takeIfAny[AnyJob](json, "job"),
    takeIfAny[Boolean](json, "again").getOrElse(false))
}

/** A commit that a request has made, in the log at that place. */
private[lakelog] final case class CommitMade(location: String, version: Long, commitId: String)
  extends Message {
  override def members: Members = List(
    "location" -> put(location),
    "version" -> put(version),
    "commit_id" -> put(commitId))
}

private[lakelog] object CommitMade extends Companion[CommitMade] {
  override def of(json: JObject): CommitMade = CommitMade(
    take[String](json, "location"),
    take[Long](json, "version"),
    take[String](json, "commit_id"))
}

/**
 * Run a procedure; `result` is what came of its job, and `commits` are what the session has committed last, where the
 * procedure is about that.
 */
private[lakelog] final case class Call(
    call: OfProcedure,
    token: Option[Token] = None,
    result: Option[AnyResult] = None,
    commits: Seq[CommitMade] = Nil)
  extends Request[Rows]("call") {
  override def members: Members = call.members ++ List(
    "token" -> putOrNull(token),
    "result" -> putIfAny(result),
    "commits" -> put(commits))
  override def answer(json: JObject): Rows = Rows.of(json)
}

private[lakelog] object Call extends Companion[Call] {
  override def of(json: JObject): Call = Call(
    OfProcedure.of(json),
    takeIfAny[Token](json, "token"),
    takeIfAny[AnyResult](json, "result"),
    takeIfAny[Seq[CommitMade]](json, "commits").getOrElse(Nil))
}

/** The rows of the result, each with a value for every column. */
private[lakelog] final case class Rows(rows: Seq[Seq[FreeJson]])
  extends Message {
  override def members: Members = List("rows" -> put(rows))
}

private[lakelog] object Rows extends Companion[Rows] {
  override def of(json: JObject): Rows = Rows(take[Seq[Seq[FreeJson]]](json, "rows"))
}

/** Run a procedure that asks for jobs, up to the first one. */
private[lakelog] final case class BeginCall(call: OfProcedure)
  extends Request[Step]("begin_call") {
  override def members: Members = call.members
  override def answer(json: JObject): Step = Step.of(json)
}

private[lakelog] object BeginCall extends Companion[BeginCall] {
  override def of(json: JObject): BeginCall = BeginCall(OfProcedure.of(json))
}

/** The job for which the call `going` waits; or the rows of its result, at the end. */
private[lakelog] final case class Step(
    going: Option[String] = None,
    job: Option[AnyJob] = None,
    rows: Option[Seq[Seq[FreeJson]]] = None)
  extends Message {
  override def members: Members = List("going" -> putIfAny(going), "job" -> putIfAny(job), "rows" -> putIfAny(rows))
}

private[lakelog] object Step extends Companion[Step] {
  override def of(json: JObject): Step = Step(
    takeIfAny[String](json, "going"),
    takeIfAny[AnyJob](json, "job"),
    takeIfAny[Seq[Seq[FreeJson]]](json, "rows"))
}

/** Go on with a call by what came of its job: its `result`, or why it `failed`. */
private[lakelog] final case class GoOnCall(
    going: String,
    result: Option[AnyResult] = None,
    failed: Option[String] = None,
    cancelled: Boolean = false)
  extends Request[Step]("go_on_call") {
  override def members: Members = List(
    "going" -> put(going),
    "result" -> putIfAny(result),
    "failed" -> putIfAny(failed),
    "cancelled" -> put(cancelled))
  override def answer(json: JObject): Step = Step.of(json)
}

private[lakelog] object GoOnCall extends Companion[GoOnCall] {
  override def of(json: JObject): GoOnCall = GoOnCall(
    take[String](json, "going"),
    takeIfAny[AnyResult](json, "result"),
    takeIfAny[String](json, "failed"),
    takeIfAny[Boolean](json, "cancelled").getOrElse(false))
}

/** The files that the job of a call is about, as an Arrow stream. */
private[lakelog] final case class CallFiles(going: String)
  extends Request[Done]("call_files") {
  override def members: Members = List("going" -> put(going))
  override def answer(json: JObject): Done = Done.of(json)
}

private[lakelog] object CallFiles extends Companion[CallFiles] {
  override def of(json: JObject): CallFiles = CallFiles(take[String](json, "going"))
}

/** The token for the commit of a transaction, before the commit is requested. */
private[lakelog] final case class TransactionToken()
  extends Request[Token]("transaction_token") {
  override def members: Members = List()
  override def answer(json: JObject): Token = Token.of(json)
}

private[lakelog] object TransactionToken extends Companion[TransactionToken] {
  override def of(json: JObject): TransactionToken = TransactionToken()
}

/** Roll back the transaction of a session that is gone. */
private[lakelog] final case class AbandonTransaction()
  extends Request[Done]("abandon_transaction") {
  override def members: Members = List()
  override def answer(json: JObject): Done = Done.of(json)
}

private[lakelog] object AbandonTransaction extends Companion[AbandonTransaction] {
  override def of(json: JObject): AbandonTransaction = AbandonTransaction()
}
