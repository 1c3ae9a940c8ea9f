package org.apache.spark.sql.lakelog

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.constraints.SetNotNull
import org.apache.spark.sql.lakelog.foreign.{ForeignReads, ForeignStatements, ForeignWrites, KnownOptions, RefusedStatements, ResolveStatementsInWords}
import org.apache.spark.sql.lakelog.functions.{FunctionStatements, ResolveTableFunctionCalls, TableFunctionCalls}
import org.apache.spark.sql.lakelog.internals.additions.Additions
import org.apache.spark.sql.lakelog.internals.plans.{KeptRows, OneRowScans}
import org.apache.spark.sql.lakelog.internals.shows.{DescribedViews, ShowBoth, ShowCreateTables}
import org.apache.spark.sql.lakelog.internals.statements.{LakeParser, LakeStatement, MadeValues, OutermostParser, QuickRows, SessionNames, WriteTargets, WritesByName}
import org.apache.spark.sql.lakelog.internals.streams.{ChangesApart, ComparedChanges, StreamedTexts}
import org.apache.spark.sql.lakelog.refs.{RefStatements, SessionBranch}
import org.apache.spark.sql.lakelog.rows.{FactsInMerges, FactsInStatements, MadeByChance, MergeChecks, PaddedDeletes, RepeatedParts, SmallSources, SourcesOnce}
import org.apache.spark.sql.lakelog.show.ShowsByPattern
import org.apache.spark.sql.lakelog.statements.{AnalyzeStatements, CloneStatements, EvolutionStatements, MaterializeStatement, NestedLengths, ReadFilled, ResolveTableStatements}
import org.apache.spark.sql.lakelog.views.EvolvingViews
import org.apache.spark.sql.lakelog.write.{OverwriteByRows, StreamSinks}

/**
 * What lakelog adds to a session, by `spark.sql.extensions`: statements that Spark's grammar does not have, and
 * statements that Spark has for its own session catalog only.
 *
 * All of it leaves alone what is not about a lakelog catalog. A new statement goes into one of the lists below.
 */
class LakeExtensions extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    OutermostParser.inject(extensions, LakeParser(_, LakeExtensions.statements, Additions.inOtherWords))
    LakeExtensions.early.foreach(rule => extensions.injectHintResolutionRule(rule))
    LakeExtensions.resolution.foreach(rule => extensions.injectResolutionRule(rule))
    LakeExtensions.late.foreach(rule => extensions.injectPostHocResolutionRule(rule))
    LakeExtensions.optimizer.foreach(rule => extensions.injectPreCBORule(rule))
    LakeExtensions.strategies.foreach(strategy => extensions.injectPlannerStrategy(strategy))
  }
}

private[lakelog] object LakeExtensions {

  /** lakelog's own statements, each tried on every text before Spark's parser is. */
  val statements: Seq[LakeStatement] =
    Seq(EvolutionStatements, RefStatements, CloneStatements, MaterializeStatement, ForeignStatements,
      RefusedStatements) ++
      Additions.statements

  /**
   * Rules that see a plan before Spark resolves any of it: the place to replace what Spark would refuse for a catalog
   * that is not its own. Spark applies them again and again until nothing changes.
   */
  val early: Seq[SparkSession => Rule[LogicalPlan]] =
    Additions.early ++ Seq(SessionBranch.Early, ForeignWrites, ForeignReads, WritesByName.Early, FunctionStatements,
      TableFunctionCalls,
      NestedLengths.Statement, MadeValues.Statement, ComparedChanges.Statement, FactsInMerges.Set,
      WriteTargets.Early) ++ Additions.early

  /** Rules among those by which Spark resolves names, after Spark's own. */
  val resolution: Seq[SparkSession => Rule[LogicalPlan]] =
    Seq(WriteTargets.Resolution, NestedLengths, SetNotNull.Resolution(_), ResolveTableFunctionCalls,
      ResolveTableStatements,
      ResolveStatementsInWords, ForeignReads.Loaded, AnalyzeStatements,
      SessionNames, ShowBoth, DescribedViews, StreamedTexts, ComparedChanges.Resolution,
      FactsInMerges) ++ Additions.resolution

  /** Rules that see a plan once when all of it is resolved, before Spark checks it. */
  val late: Seq[SparkSession => Rule[LogicalPlan]] =
    Seq(WritesByName.Late, KnownOptions, OverwriteByRows.OfColumns, ChangesApart, new EvolvingViews(_),
      new StreamSinks(_), ReadFilled, FactsInStatements,
      MadeValues, MergeChecks, MadeByChance, SourcesOnce, RepeatedParts, PaddedDeletes, ShowsByPattern)

  /** Rules that see an optimised plan once, before Spark pushes filters and columns down into its scans. */
  val optimizer: Seq[SparkSession => Rule[LogicalPlan]] =
    Additions.optimizer ++ Seq(SmallSources, OverwriteByRows, OneRowScans)

  /** What carries statements out in another way than Spark does. */
  val strategies: Seq[SparkSessionExtensions#StrategyBuilder] =
    Seq(ShowCreateTables, QuickRows, WritesByName.Strategy, ComparedChanges.Strategy, KeptRows)
}
