package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.{SparkSession => Session}
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, Project, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.MetadataBuilder

/**
 * Makes the rows of a streaming query fit the table that it writes to, as those of any other write.
 *
 * Spark gives a table the rows of a streaming query as they are: it looks for columns neither by name nor by type, and
 * holds nothing against NOT NULL, CHECK and the lengths of texts. So the query is analysed as if it were appended here,
 * once, when it starts. From 4.3 on Spark loads the table anew for each batch: so the first column says for which version
 * the rows were made to fit, and where the query's checkpoint is.
 */
private[lakelog] final class StreamSinks(session: Session) extends Rule[LogicalPlan] {
  import StreamPreparation._

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case write: WriteToStream => write.sink match {
        case place: StreamTarget =>
          apply(write.copy(sink = place.table, catalogAndIdent = Some((place.catalog, place.ident))))
        case named: LakeTable if prepared(write.inputQuery.schema).isEmpty =>
          val table = named.written
          if (table.access.channel.isInTransaction) throw table.streamsInTransaction
          table.refuseUncomputed()
          val (catalog, ident) = (write.catalogAndIdent.map(_._1), write.catalogAndIdent.map(_._2))
          def relation = DataSourceV2Relation.create(table.toBeFilled, catalog, ident)
          PlanInternals.analyzed(session, AppendData.byName(relation, write.inputQuery)) match {
            case fitting: V2WriteCommand =>
              write.copy(sink = table, inputQuery = marked(fitting.query, table, write.resolvedCheckpointLocation))
            case other => throw new IllegalStateException(s"Spark analyses an append as\n$other")
          }
        case _ => write
      }
    case other => other
  }

  private def marked(query: LogicalPlan, table: LakeTable, checkpoint: String): LogicalPlan = {
    val first = query.output.head
    val metadata = new MetadataBuilder().withMetadata(first.metadata)
      .putString(Key, table.version).putString(CheckpointKey, checkpoint).build()
    Project(Alias(first, first.name)(explicitMetadata = Some(metadata)) +: query.output.tail, query)
  }
}
