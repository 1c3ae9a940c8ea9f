package org.apache.spark.sql.lakelog

import java.util.{Collections, Map => JMap, WeakHashMap}

import scala.collection.mutable

/**
 * What a statement was told of namespaces: Spark's analysis of a CREATE TABLE asks for the same one in each of its
 * rounds, seven times in all, to look for a default collation.
 */
private[lakelog] object NamespaceLooks {

  private type Looks = mutable.Map[(AnyRef, Seq[String]), JMap[String, String]]

  // A statement's tracker is known while it is analysed and optimised, and nobody else has the same.
  private val statements = Collections.synchronizedMap(new WeakHashMap[AnyRef, Looks]())

  /** What `ask` answers for the namespace of that session's catalog; once for each statement that is analysed. */
  def once(session: LakeSession, names: Array[String])(ask: => JMap[String, String]): JMap[String, String] =
    StatementInternals.tracker match {
      case Some(tracker) =>
        val looks = statements.computeIfAbsent(tracker, _ => mutable.Map.empty)
        looks.synchronized(looks.getOrElseUpdate((session, names.toSeq), ask))
      case None => ask
    }
}
