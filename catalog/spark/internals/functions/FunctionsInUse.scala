package org.apache.spark.sql.lakelog.internals.functions

import scala.collection.mutable

import org.apache.spark.sql.catalyst.catalog.{SQLFunction, UserDefinedFunctionErrors}
import org.apache.spark.sql.lakelog.process.ProcessState

/**
 * Which functions the analysis of a body meets, at whatever depth: Spark puts the bodies of functions and views in the
 * place of their calls, and looks up what those use in the same thread.
 */
private[lakelog] final class FunctionsInUse {
  private val met = mutable.LinkedHashMap.empty[String, SQLFunction]
}

private[lakelog] object FunctionsInUse {

  /** The functions that the body uses which the thread analyses; None if it analyses none. */
  private val slot = new ProcessState.Slot[Option[FunctionsInUse]](() => None)

  def note(stored: StoredFunction, function: SQLFunction): Unit = ProcessState.ofThread(slot)
    .foreach(_.met.getOrElseUpdate(key(stored.catalog, function.name.unquotedString), function))

  /** Refuses what `analyse` analyses when it uses the function itself. */
  def refusingCycles[T](catalog: String, function: SQLFunction)(analyse: => T): T = {
    val thread = ProcessState.ofThread
    val before = thread(slot)
    val inUse = new FunctionsInUse
    thread(slot) = Some(inUse)
    try {
      val result = analyse
      val own = key(catalog, function.name.unquotedString)
      if (inUse.met.contains(own)) {
        throw UserDefinedFunctionErrors.cyclicFunctionReference(path(function, inUse.met.toMap - own))
      }
      result
    } finally thread(slot) = before
  }

  private def key(catalog: String, name: String): String = s"$catalog $name"

  /** The shortest way back to the function, over those whose text has the name of the next one. */
  private def path(function: SQLFunction, met: Map[String, SQLFunction]): String = {
    def uses(user: SQLFunction, used: SQLFunction): Boolean = {
      val text = user.exprText.orElse(user.queryText).getOrElse("").toLowerCase(java.util.Locale.ROOT)
      s"(?<![\\w])${java.util.regex.Pattern.quote(used.name.funcName)}(?![\\w])".r.findFirstIn(text).isDefined
    }
    @scala.annotation.tailrec
    def back(ways: List[List[SQLFunction]], left: Set[SQLFunction]): List[SQLFunction] =
      ways.find(way => uses(way.head, function)) match {
        case Some(way) => way.reverse
        case None =>
          val longer = ways.flatMap(way => left.filter(uses(way.head, _)).map(_ :: way))
          if (longer.isEmpty) Nil else back(longer, left -- longer.map(_.head))
      }
    val between = if (uses(function, function)) Nil
    else {
      back(met.values.filter(uses(function, _)).map(List(_)).toList, met.values.toSet)
    }
    (function +: between :+ function).map(_.name.unquotedString).mkString(" -> ")
  }
}
