package org.apache.spark.sql.lakelog.internals.additions

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.jdk.CollectionConverters._
import scala.util.matching.Regex

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Cast}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SessionState
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.{ChangelogRange, Changes, ChangesAsked}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * `CHANGES FROM …` behind the name of a table, which this Spark's grammar does not have. Its parser is given an option in the
 * place of the clause, `WITH ('lakelog.changes' = '…')`. The value is the clause itself, encoded, so that texts which are
 * kept, such as that of a view, can be restored.
 */
private[lakelog] object ChangesClauses extends EarlyRewrite {

  private val Key = "lakelog.changes"
  private val Replaced: Regex = raw"WITH \('lakelog\.changes' = '([A-Za-z0-9_-]+)'(?:, |\))".r

  /** Options in the place of such clauses. */
  def replacements(text: String): Seq[Replacement] = ClauseScanner(text).map { clause =>
    val encoded = Base64.getUrlEncoder.withoutPadding.encodeToString(clause.text.getBytes(UTF_8))
    Replacement(clause.start, clause.end, s"WITH ('$Key' = '$encoded'${if (clause.hasOptions) ", " else ")"}")
  }

  /** The text as it was written. */
  def restored(text: String): String =
    Replaced.replaceAllIn(text, found => Regex.quoteReplacement(decoded(found.group(1))))

  private def decoded(value: String): String = new String(Base64.getUrlDecoder.decode(value), UTF_8)

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case named: UnresolvedRelation if named.options.containsKey(Key) =>
      val name = named.multipartIdentifier
      if (!LakeNames.isTable(name)) throw Failures.unsupported(
        s"CHANGES FROM of a table that is not lakelog's, such as ${SchemaInternals.quoted(name)}, needs Spark 4.2 or " +
          s"newer, and this is $SPARK_VERSION.")
      val others = named.options.asCaseSensitiveMap.asScala.filterNot(_._1.equalsIgnoreCase(Key))
      val options = new CaseInsensitiveStringMap(others.asJava)
      val clause = ClauseScanner(s"t ${decoded(named.options.get(Key))}").head
      Changes.Named(UnresolvedRelation(name, options, named.isStreaming), ChangesAsked.in(range(clause), options))
  }

  private def range(clause: ChangesClause): ChangelogRange = {
    val isLastIncluded = clause.last.forall(_.isIncluded)
    if (clause.areTimes) ChangesAsked.times(
      time(clause.first.value), clause.last.map(bound => time(bound.value)), clause.first.isIncluded, isLastIncluded)
    else ChangesAsked.versions(
      version(clause.first.value), clause.last.map(bound => version(bound.value)), clause.first.isIncluded,
      isLastIncluded)
  }

  private def state: SessionState = SparkSession.active.sessionState

  private def version(written: String): String = state.sqlParser.parseExpression(written).eval().toString

  /** The microseconds since 1970 that an expression says. */
  private def time(written: String): Long = {
    val expression = Cast(state.sqlParser.parseExpression(written), TimestampType)
    val query = state.executePlan(Project(Seq(Alias(expression, "time")()), OneRowRelation()))
    query.assertAnalyzed()
    val row = query.executedPlan.executeCollect().head
    if (row.isNullAt(0)) throw Failures.invalid(s"$written in CHANGES FROM TIMESTAMP is NULL: give a time.")
    row.getLong(0)
  }
}
