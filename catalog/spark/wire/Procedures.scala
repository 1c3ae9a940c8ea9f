// Written by scripts/wire from lakelog.spark.requests.procedures: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** Return the declarations of all procedures. */
private[lakelog] final case class ListProcedures()
  extends Request[ProcedureList]("procedures") {
  override def members: Members = List()
  override def answer(json: JObject): ProcedureList = ProcedureList.of(json)
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
 * The declaration of a procedure. With `changes`, it may be retried by a token only. With `job`, Spark has to work on
 * data first. With `asks`, it asks Spark for jobs while it runs, and may be run again after any stop. With `rows`, it
 * changes rows that readers of a table see. `session` is its effect on the session's transaction: `begins`, `commits`,
 * `rolls-back` or nothing.
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

private[lakelog] final case class ProcedureList(procedures: Seq[DeclaredProcedure])
  extends Message {
  override def members: Members = List("procedures" -> put(procedures))
}

private[lakelog] object ProcedureList extends Companion[ProcedureList] {
  override def of(json: JObject): ProcedureList = ProcedureList(take[Seq[DeclaredProcedure]](json, "procedures"))
}

/** A request about a call of a procedure. The adapter has checked and cast its arguments. */
private[lakelog] final case class ProcedureRequest(
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

private[lakelog] object ProcedureRequest extends Companion[ProcedureRequest] {
  override def of(json: JObject): ProcedureRequest = ProcedureRequest(
    take[String](json, "procedure"),
    take[FreeJson](json, "arguments"),
    take[String](json, "catalog_name"),
    take[Seq[String]](json, "current_namespace"))
}

/** Return the token of the next call, if the call needs a token. */
private[lakelog] final case class CallToken(call: ProcedureRequest)
  extends Request[TokenOfCall]("call_token") {
  override def members: Members = call.members
  override def answer(json: JObject): TokenOfCall = TokenOfCall.of(json)
}

private[lakelog] object CallToken extends Companion[CallToken] {
  override def of(json: JObject): CallToken = CallToken(ProcedureRequest.of(json))
}

private[lakelog] final case class TokenOfCall(token: Option[Token] = None)
  extends Message {
  override def members: Members = List("token" -> putOrNull(token))
}

private[lakelog] object TokenOfCall extends Companion[TokenOfCall] {
  override def of(json: JObject): TokenOfCall = TokenOfCall(takeIfAny[Token](json, "token"))
}

/** Return the job that Spark has to run before the call. `result` is the result of the job before it. */
private[lakelog] final case class CallPrepare(call: ProcedureRequest, result: Option[AnyResult] = None)
  extends Request[NextJob]("call_prepare") {
  override def members: Members = call.members ++ List("result" -> putIfAny(result))
  override def answer(json: JObject): NextJob = NextJob.of(json)
}

private[lakelog] object CallPrepare extends Companion[CallPrepare] {
  override def of(json: JObject): CallPrepare = CallPrepare(
    ProcedureRequest.of(json),
    takeIfAny[AnyResult](json, "result"))
}

/** The next job, or None if nothing is left to do. With `again`, the adapter asks for another job after it. */
private[lakelog] final case class NextJob(job: Option[AnyJob], again: Boolean = false)
  extends Message {
  override def members: Members = List("job" -> putOrNull(job), "again" -> putUnless(again)(false))
}

private[lakelog] object NextJob extends Companion[NextJob] {
  override def of(json: JObject): NextJob = NextJob(
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
 * Run a procedure. `result` is the result of its job. `commits` are the session's last commits, if the procedure is
 * about these.
 */
private[lakelog] final case class CallProcedure(
    call: ProcedureRequest,
    token: Option[Token] = None,
    result: Option[AnyResult] = None,
    commits: Seq[CommitMade] = Nil)
  extends Request[CallRows]("call") {
  override def members: Members = call.members ++ List(
    "token" -> putOrNull(token),
    "result" -> putIfAny(result),
    "commits" -> put(commits))
  override def answer(json: JObject): CallRows = CallRows.of(json)
}

private[lakelog] object CallProcedure extends Companion[CallProcedure] {
  override def of(json: JObject): CallProcedure = CallProcedure(
    ProcedureRequest.of(json),
    takeIfAny[Token](json, "token"),
    takeIfAny[AnyResult](json, "result"),
    takeIfAny[Seq[CommitMade]](json, "commits").getOrElse(Nil))
}

/** The rows of the result, each with a value for every column. */
private[lakelog] final case class CallRows(rows: Seq[Seq[FreeJson]])
  extends Message {
  override def members: Members = List("rows" -> put(rows))
}

private[lakelog] object CallRows extends Companion[CallRows] {
  override def of(json: JObject): CallRows = CallRows(take[Seq[Seq[FreeJson]]](json, "rows"))
}

/** Run a procedure that asks for jobs, up to the first job. */
private[lakelog] final case class BeginCall(call: ProcedureRequest)
  extends Request[CallStep]("begin_call") {
  override def members: Members = call.members
  override def answer(json: JObject): CallStep = CallStep.of(json)
}

private[lakelog] object BeginCall extends Companion[BeginCall] {
  override def of(json: JObject): BeginCall = BeginCall(ProcedureRequest.of(json))
}

/** The job that the call `going` waits for, or the rows of its result at the end. */
private[lakelog] final case class CallStep(
    going: Option[String] = None,
    job: Option[AnyJob] = None,
    rows: Option[Seq[Seq[FreeJson]]] = None)
  extends Message {
  override def members: Members = List("going" -> putIfAny(going), "job" -> putIfAny(job), "rows" -> putIfAny(rows))
}

private[lakelog] object CallStep extends Companion[CallStep] {
  override def of(json: JObject): CallStep = CallStep(
    takeIfAny[String](json, "going"),
    takeIfAny[AnyJob](json, "job"),
    takeIfAny[Seq[Seq[FreeJson]]](json, "rows"))
}

/** Go on with a call, by the `result` of its job, or the reason why it `failed`. */
private[lakelog] final case class GoOnCall(
    going: String,
    result: Option[AnyResult] = None,
    failed: Option[String] = None,
    cancelled: Boolean = false)
  extends Request[CallStep]("go_on_call") {
  override def members: Members = List(
    "going" -> put(going),
    "result" -> putIfAny(result),
    "failed" -> putIfAny(failed),
    "cancelled" -> put(cancelled))
  override def answer(json: JObject): CallStep = CallStep.of(json)
}

private[lakelog] object GoOnCall extends Companion[GoOnCall] {
  override def of(json: JObject): GoOnCall = GoOnCall(
    take[String](json, "going"),
    takeIfAny[AnyResult](json, "result"),
    takeIfAny[String](json, "failed"),
    takeIfAny[Boolean](json, "cancelled").getOrElse(false))
}

/** Return the files of a call's job, as an Arrow stream. */
private[lakelog] final case class CallFiles(going: String)
  extends Request[EmptyAnswer]("call_files") {
  override def members: Members = List("going" -> put(going))
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object CallFiles extends Companion[CallFiles] {
  override def of(json: JObject): CallFiles = CallFiles(take[String](json, "going"))
}

/** Return the token for the commit of a transaction, before the commit is requested. */
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
  extends Request[EmptyAnswer]("abandon_transaction") {
  override def members: Members = List()
  override def answer(json: JObject): EmptyAnswer = EmptyAnswer.of(json)
}

private[lakelog] object AbandonTransaction extends Companion[AbandonTransaction] {
  override def of(json: JObject): AbandonTransaction = AbandonTransaction()
}
