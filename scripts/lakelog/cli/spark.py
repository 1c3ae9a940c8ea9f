"""The command for Spark: the settings that make a Spark session see a warehouse."""

from __future__ import annotations

import shlex

import click

from lakelog.cli import answer
from lakelog.cli.options import Place, takes_place
from lakelog.spark import spark_conf as settings_for


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
@takes_place
def spark_conf(place: Place, catalog: str, session_catalog: bool, jars: str) -> None:
    """Print the settings that show Spark the warehouse.

    For spark-sql, spark-submit and the others: spark-sql $(lakelog spark-conf --warehouse …)

    Where a path has a space in it, the shell would split the settings there. They are printed with quotes then,
    for eval: eval "spark-sql $(lakelog spark-conf --warehouse …)"
    """
    found = settings_for(
        place.required_warehouse,
        name=catalog,
        endpoint=place.endpoint,
        region=place.region,
        path_style=place.path_style or None,
        session_catalog=session_catalog,
    )
    found["spark.jars"] = ",".join([*filter(None, jars.split(",")), found["spark.jars"]])
    if place.as_json:
        answer.in_json(dict(found))
        return
    arguments = [f"{name}={value}" for name, value in found.items()]
    if any(argument.split() != [argument] for argument in arguments):
        # Within eval, a line of its own would be a command of its own.
        click.echo(" \\\n".join(f"--conf {shlex.quote(argument)}" for argument in arguments))
        click.echo(
            'lakelog: a path here has a space, at which the shell splits $(…): write eval "spark-sql $(lakelog '
            'spark-conf …)"',
            err=True,
        )
    else:
        click.echo("\n".join(f"--conf {argument}" for argument in arguments))


COMMANDS = (spark_conf,)
