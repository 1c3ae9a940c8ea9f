package org.apache.spark.sql.lakelog

import java.util.{Map => JMap}

/**
 * What a statement has loaded of namespaces: Spark's analysis of a CREATE TABLE asks for the same one in each of its
 * rounds, seven times in all, to look for a default collation.
 */
private[lakelog] object NamespaceLooks {

  /** What `ask` answers for the namespace of that session's catalog; once for each statement that is analysed. */
  def once(session: LakeSession, names: Array[String])(ask: => JMap[String, String]): JMap[String, String] =
    ProcessState.ofStatement.map(_.namespaces) match {
      case Some(looks) => looks.synchronized(looks.getOrElseUpdate((session, names.toSeq), ask))
      case None => ask
    }
}
