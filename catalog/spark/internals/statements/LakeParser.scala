package org.apache.spark.sql.lakelog.internals.statements

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}
import org.apache.spark.sql.execution.SparkSqlParser
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.seam.{Errors, Names}

/**
 * Spark's parser, which parses everything except lakelog's own statements.
 *
 * A proxy, because the methods of the interface differ between versions of Spark, and because the parser below may be
 * that of another extension.
 */
private final class LakeParser(
    spark: ParserInterface, statements: Seq[LakeStatement], inOtherWords: String => Option[OtherWords])
  extends InvocationHandler {

  override def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef = {
    val own = (method.getName, Option(arguments).toSeq.flatten) match {
      case ("parsePlan", Seq(text: String)) => parse(text)
      case ("parsePlanWithParameters", Seq(text: String, parameters)) =>
        parse(text).map { plan =>
          // Python has a context for every statement, be it without parameters.
          if (Names.areParameters(parameters).contains(true)) {
            throw Failures.unsupported(
              "lakelog's own statements do not take parameters: write the values into the text.")
          }
          plan
        }
      case _ => None
    }
    own.getOrElse {
      val text = Option(arguments).toSeq.flatten.collectFirst { case text: String => text }
      val parser = if (text.exists(isOfSpark(method.getName, _))) LakeParser.sparks else spark
      try method.invoke(parser, arguments: _*)
      catch {
        case failed: InvocationTargetException =>
          val others = text.filter(_ => LakeParser.ofQueries(method.getName)).filter(_ => isSyntax(failed.getCause))
          others.flatMap(inOtherWords) match {
            case Some(words) => again(parser, method, arguments, words)
            case None => throw declared(failed.getCause, arguments)
          }
      }
    }
  }

  private def isSyntax(error: Throwable): Boolean = error.isInstanceOf[ParseException]

  /** Parses a text that Spark's parser has refused, in words that it knows. An error is about the text as it was written. */
  private def again(
      parser: ParserInterface, method: Method, arguments: Array[AnyRef], words: OtherWords): AnyRef = {
    val others = arguments.map { case _: String => words.text; case other => other }
    try method.invoke(parser, others: _*) match {
        case plan: LogicalPlan => words.restored(plan)
        case expression: Expression => words.restored(expression)
        case other => other
      }
    catch {
      case failed: InvocationTargetException => throw (failed.getCause match {
          case error: ParseException if error.getCondition != null => words.about(error)
          case other => declared(other, arguments)
        })
    }
  }

  /**
   * Whether it is a statement of Spark's about one of lakelog's tables that the parser of another extension below might take for
   * its own: Delta's takes ADD CONSTRAINT and CLUSTER BY of any table.
   */
  private def isOfSpark(method: String, text: String): Boolean =
    method.startsWith("parsePlan") && !spark.isInstanceOf[SparkSqlParser] && {
      val words = new StatementWords(text, spark)
      LakeParser.ofTables.exists { case (verb, rest) =>
        words.beginWith(verb) && rest.exists(begin => words.take(verb.toUpperCase(Locale.ROOT) +: begin: _*)) && {
          words.take("IF", "NOT", "EXISTS")
          words.name().flatMap(name => Try(words.partsOf(name)).toOption).exists(LakeNames.isTableOrPlace)
        }
      }
    }

  /**
   * The same error as one that a proxy may throw: Spark's parser throws others than it says that it does, of scripts for
   * example.
   */
  private def declared(error: Throwable, arguments: Array[AnyRef]): Throwable = error match {
    case known @ (_: ParseException | _: RuntimeException | _: Error) => known
    case other: SparkThrowable if other.getCondition != null =>
      val text = arguments.collectFirst { case text: String => text }
      val parameters = other.getMessageParameters.asScala.toMap
      val same = Errors.parse(text, Origin(sqlText = text), other.getCondition, parameters)
      same.addSuppressed(error)
      same
    case other => other
  }

  private def parse(text: String): Option[LogicalPlan] = {
    val origin = Origin(startIndex = Some(0), stopIndex = Some(text.length - 1), sqlText = Some(text))
    CurrentOrigin.withOrigin(origin) {
      statements.iterator.flatMap(_.parse(new StatementWords(text, spark))).nextOption()
    }
  }
}

private[lakelog] object LakeParser {

  private lazy val sparks: ParserInterface = new SparkSqlParser()

  /** How statements about a table begin which Spark has, and others too. */
  private val ofTables: Seq[(String, Seq[Seq[String]])] = Seq(
    "alter" -> Seq(Seq("TABLE")),
    "create" -> Seq(Seq("TABLE"), Seq("OR", "REPLACE", "TABLE")),
    "replace" -> Seq(Seq("TABLE")),
    "show" -> Seq(Seq("COLUMNS", "IN"), Seq("COLUMNS", "FROM")))

  /** The methods whose texts may have queries in them. */
  private val ofQueries: Set[String] = Set("parsePlan", "parsePlanWithParameters", "parseQuery", "parseExpression")

  /** `inOtherWords` says what Spark's parser is to read in place of a text that it has refused, if anything. */
  def apply(
      spark: ParserInterface, statements: Seq[LakeStatement],
      inOtherWords: String => Option[OtherWords]): ParserInterface = {
    val own = new LakeParser(spark, statements, inOtherWords)
    val proxy = Proxy.newProxyInstance(spark.getClass.getClassLoader, Array(classOf[ParserInterface]), own)
    proxy.asInstanceOf[ParserInterface]
  }
}
