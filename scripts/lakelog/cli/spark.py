"""The command for Spark: the settings that make a Spark session see a warehouse."""

from __future__ import annotations

import shlex

import click

from lakelog.cli import answer
from lakelog.cli.options import Place, takes_place
from lakelog.spark import spark_conf as settings_for
from lakelog.spark.open_catalog import MAINTENANCES, PROPOSALS, STATEMENT_TEXTS
from lakelog.spark.stored_code import SETTINGS as STORED_CODE


@click.command("spark-conf")
@click.option(
    "--catalog", default="lake", show_default=True, metavar="NAME", help="The catalog's name in Spark."
)
@click.option(
    "--session-catalog", is_flag=True, help="Show the tables in Spark's own catalog spark_catalog too."
)
@click.option(
    "--jars",
    default="",
    metavar="PATHS",
    help="Your own jars, beside lakelog's, separated by commas. Give them here: Spark's own --jars replaces lakelog's.",
)
@click.option(
    "--as-of",
    metavar="TIME|CUT",
    help="Show everything as it stood at a time (UTC unless it has a time zone) or in a saved cut, read-only.",
)
@click.option(
    "--as-of-namespace",
    metavar="NAMESPACE",
    help="Whose saved cut --as-of names: what is in this namespace, as it stood then. [default: the whole catalog's]",
)
@click.option(
    "--stored-code",
    type=click.Choice(STORED_CODE),
    help="Which code from the warehouse may run: none, sql (views and functions of SQL; the default), or all.",
)
@click.option(
    "--maintenance",
    type=click.Choice(MAINTENANCES),
    help="Whether the session compacts what it writes: auto (the default), on-demand (by a property), or off.",
)
@click.option(
    "--proposals",
    type=click.Choice(tuple(PROPOSALS)),
    help="Whether processes that lose races propose their changes: auto (the default: on S3), on, or off.",
)
@click.option(
    "--statement-text",
    type=click.Choice(STATEMENT_TEXTS),
    help="What commits keep of a statement: normalized (without its literals; the default), full, or none.",
)
@click.option(
    "--fsync/--no-fsync",
    default=None,
    help="Whether commits to a folder are forced to disk, as they are by default.",
)
@click.option(
    "--python",
    metavar="PATH",
    help="The Python that runs lakelog beside Spark's driver. [default: the one of this command]",
)
@click.option(
    "--adapter-jar",
    metavar="PATH",
    help="lakelog's jar, where it is not to be built here; '' for none, where Spark has it by spark.jars.packages.",
)
@takes_place
def spark_conf(
    place: Place,
    catalog: str,
    session_catalog: bool,
    jars: str,
    as_of: str | None,
    as_of_namespace: str | None,
    stored_code: str | None,
    maintenance: str | None,
    proposals: str | None,
    statement_text: str | None,
    fsync: bool | None,
    python: str | None,
    adapter_jar: str | None,
) -> None:
    """Print the settings that show Spark the warehouse.

    For spark-sql, spark-submit and the others: spark-sql $(lakelog spark-conf --warehouse …)

    Where a value has a space in it, such as a path, the shell would split the settings there. They are printed with
    quotes then, for eval: eval "spark-sql $(lakelog spark-conf --warehouse …)"
    """
    found = settings_for(
        place.required_warehouse,
        name=catalog,
        endpoint=place.endpoint,
        region=place.region,
        path_style=place.path_style or None,
        fsync=fsync,
        as_of=as_of,
        as_of_namespace=as_of_namespace,
        maintenance=maintenance,
        proposals=proposals,
        statement_text=statement_text,
        stored_code=stored_code,
        python=python,
        jar=adapter_jar,
        session_catalog=session_catalog,
    )
    if named := [*filter(None, jars.split(",")), *filter(None, [found.get("spark.jars")])]:
        found["spark.jars"] = ",".join(named)
    if place.as_json:
        answer.in_json(dict(found))
        return
    arguments = [f"{name}={value}" for name, value in found.items()]
    if any(argument.split() != [argument] for argument in arguments):
        # Within eval, a line of its own would be a command of its own.
        click.echo(" \\\n".join(f"--conf {shlex.quote(argument)}" for argument in arguments))
        click.echo(
            'lakelog: a value here has a space, at which the shell splits $(…): write eval "spark-sql $(lakelog '
            'spark-conf …)"',
            err=True,
        )
    else:
        click.echo("\n".join(f"--conf {argument}" for argument in arguments))


COMMANDS = (spark_conf,)
