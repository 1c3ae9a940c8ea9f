package org.apache.spark.sql.lakelog.internals.statements

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.SparkThrowable
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
private final class LakeParser(spark: ParserInterface, statements: Seq[LakeStatement]) extends InvocationHandler {

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
      catch { case failed: InvocationTargetException => throw declared(failed.getCause, arguments) }
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

  def apply(spark: ParserInterface, statements: Seq[LakeStatement]): ParserInterface = {
    val own = new LakeParser(spark, statements)
    val proxy = Proxy.newProxyInstance(spark.getClass.getClassLoader, Array(classOf[ParserInterface]), own)
    proxy.asInstanceOf[ParserInterface]
  }
}
