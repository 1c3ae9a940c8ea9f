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
@takes_place
def spark_conf(place: Place, catalog: str, session_catalog: bool) -> None:
    """Print the settings that show Spark the warehouse.

    For spark-sql and spark-submit: spark-sql $(lakelog spark-conf --warehouse …)
    """
    found = settings_for(
        place.required_warehouse,
        name=catalog,
        endpoint=place.endpoint,
        region=place.region,
        path_style=place.path_style or None,
        session_catalog=session_catalog,
    )
    if place.as_json:
        answer.in_json(dict(found))
    else:
        for name, value in found.items():
            click.echo(f"--conf {shlex.quote(f'{name}={value}')}")


COMMANDS = (spark_conf,)
