package org.apache.spark.sql.lakelog.show

import java.util.{Map => JMap}

import scala.collection.mutable

import org.apache.spark.sql.lakelog.process.ProcessState

/**
 * What a statement has loaded of namespaces: Spark's analysis of a CREATE TABLE asks for the same one in each of its
 * rounds, seven times in all, to look for a default collation.
 */
private[lakelog] object NamespaceLooks {

  /** What was said of namespaces, by the session of the catalog and the name. */
  private val slot = new ProcessState.Slot(() => mutable.Map.empty[(AnyRef, Seq[String]), JMap[String, String]])

  /** What `ask` answers for the namespace of that session's catalog; once for each statement that is analysed. */
  def once(session: AnyRef, names: Array[String])(ask: => JMap[String, String]): JMap[String, String] =
    ProcessState.ofStatement.map(_(slot)) match {
      case Some(looks) => looks.synchronized(looks.getOrElseUpdate((session, names.toSeq), ask))
      case None => ask
    }
}
