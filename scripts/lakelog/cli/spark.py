"""The command for Spark: the settings that make a Spark session see a warehouse."""

from __future__ import annotations

import shlex
from typing import Unpack

import click

from lakelog.cli import answer
from lakelog.cli.options import Choice, Place, takes_place
from lakelog.log.stores import endpoint_option
from lakelog.spark import SparkSettings
from lakelog.spark.configure import settings_beside
from lakelog.spark.open_catalog import MAINTENANCES, PROPOSALS, STATEMENT_TEXTS
from lakelog.spark.s3a import PACKAGES_KEY, spark_defaults
from lakelog.spark.stored_code import SETTINGS as STORED_CODE


@click.command("spark-conf")
@click.option(
    "--catalog",
    "name",
    default="lake",
    show_default=True,
    metavar="NAME",
    help="The catalog's name in Spark.",
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
    "--packages",
    default="",
    metavar="NAMES",
    help="Your own packages, beside lakelog's. Give them here: Spark's own --packages replaces lakelog's.",
)
@click.option(
    "--s3a/--no-s3a",
    default=None,
    help="Whether Spark gets the connector of the warehouse's cloud if it has none, as it does by default.",
)
@click.option(
    "--as-of",
    metavar="TIME|CUT",
    help="Read all tables as of that time (UTC unless it has a time zone) or saved cut.",
)
@click.option(
    "--as-of-namespace",
    metavar="NAMESPACE",
    help="The namespace whose saved cut --as-of names; only what is in it is seen. [default: the whole catalog]",
)
@click.option(
    "--stored-code",
    type=Choice(STORED_CODE),
    help="Which code from the warehouse may run: none, sql (views and functions of SQL; the default), or all.",
)
@click.option(
    "--maintenance",
    type=Choice(MAINTENANCES),
    help="Whether the session compacts what it writes: auto (the default), on-demand (by a property), or off.",
)
@click.option(
    "--proposals",
    type=Choice(tuple(PROPOSALS)),
    help="Whether processes that lose races propose their changes: auto (the default: on S3), on, or off.",
)
@click.option(
    "--statement-text",
    type=Choice(STATEMENT_TEXTS),
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
    help="The Python that runs lakelog beside Spark's driver. [default: the Python of this command]",
)
@click.option(
    "--adapter-jar",
    "jar",
    metavar="PATH",
    help="lakelog's jar, if it is not to be built here; '' for none, if Spark has it by spark.jars.packages.",
)
@takes_place
def spark_conf(place: Place, jars: str, packages: str, **given: Unpack[SparkSettings]) -> None:
    """Print the settings by which Spark sees the warehouse.

    They are for spark-sql, spark-submit and the others: spark-sql $(lakelog spark-conf --warehouse …)

    If a value has a space in it, such as a path, the shell would split the settings there. They are printed with quotes
    then, for eval: eval "spark-sql $(lakelog spark-conf --warehouse …)"
    """
    server = {endpoint_option(place.required_warehouse): place.endpoint}
    given |= {
        "endpoint": server.get("endpoint"),
        "gcs_endpoint": server.get("gcs_endpoint"),
        "azure_endpoint": server.get("azure_endpoint"),
        "region": place.region,
        "path_style": place.path_style or None,
    }
    own_lists = {"spark.jars": jars, PACKAGES_KEY: packages}
    defaults = spark_defaults()
    combined_lists = {
        key: ",".join(filter(None, [value, defaults.get(key)])) for key, value in own_lists.items()
    }
    settings = settings_beside(place.required_warehouse, given, defaults | combined_lists)
    if jar_paths := [*filter(None, jars.split(",")), *filter(None, [settings.get("spark.jars")])]:
        settings["spark.jars"] = ",".join(jar_paths)
    if packages:
        settings.setdefault(PACKAGES_KEY, combined_lists[PACKAGES_KEY])
    if place.as_json:
        answer.in_json(dict(settings))
        return
    arguments = [f"{name}={value}" for name, value in settings.items()]
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
