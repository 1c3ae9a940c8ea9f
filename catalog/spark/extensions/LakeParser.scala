package org.apache.spark.sql.lakelog

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}

import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}

/** A statement that Spark's grammar does not have. */
private[lakelog] trait LakeStatement {

  /**
   * The statement's plan, with names unresolved; None for any other text, which has to be told quickly: Spark's parser
   * takes it then. A text that can be nothing else and is wrong throws a ParseException. `spark` is Spark's own parser,
   * for the expressions and names in it.
   */
  def parse(text: String, spark: ParserInterface): Option[LogicalPlan]
}

/**
 * Spark's parser, which is asked for whatever is none of lakelog's statements.
 *
 * A proxy, because the methods of the interface differ between versions of Spark, and because the parser below may be
 * that of another extension.
 */
private final class LakeParser(spark: ParserInterface, statements: Seq[LakeStatement]) extends InvocationHandler {

  override def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef = {
    val own = (method.getName, Option(arguments).toSeq.flatten) match {
      case ("parsePlan", Seq(text: String)) => parse(text)
      case ("parsePlanWithParameters", Seq(text: String, _: ParameterContext)) =>
        parse(text).map { _ =>
          throw Failures.invalid("This statement of lakelog's takes no parameters: write the values into its text.")
        }
      case _ => None
    }
    own.getOrElse {
      try method.invoke(spark, arguments: _*)
      catch { case failed: InvocationTargetException => throw failed.getCause }
    }
  }

  private def parse(text: String): Option[LogicalPlan] = {
    val origin = Origin(startIndex = Some(0), stopIndex = Some(text.length - 1), sqlText = Some(text))
    CurrentOrigin.withOrigin(origin) {
      statements.iterator.flatMap(_.parse(text, spark)).nextOption()
    }
  }
}

private[lakelog] object LakeParser {

  def apply(spark: ParserInterface, statements: Seq[LakeStatement]): ParserInterface = Proxy.newProxyInstance(
    spark.getClass.getClassLoader, Array(classOf[ParserInterface]), new LakeParser(spark, statements)
  ).asInstanceOf[ParserInterface]
}
