"""An operation is declared once: its command and its procedure have the same parameters, and one convention."""

from __future__ import annotations

import click
import pytest

from lakelog.catalog.keeping.maintenance import expire, vacuum
from lakelog.catalog.operations.declare import ACTS_AT_ONCE, REPORTS_FIRST, DeclaredOperation, OperationEffect
from lakelog.catalog.operations.every import EVERY
from lakelog.catalog.operations.maintaining import EXPIRE, VACUUM
from lakelog.cli.main import cli
from lakelog.spark.procedures import all_procedures
from programs import operation_list


def test_a_procedure_that_has_the_name_of_a_command_is_declared_once() -> None:
    names = {name.replace("_", "-"): name for name in all_procedures()}
    both = {names[name] for name in cli.list_commands(click.Context(cli)) if name in names}
    assert both <= {operation.name for operation in EVERY}


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_an_operation_is_a_command_and_a_procedure(operation: DeclaredOperation) -> None:
    procedure = all_procedures()[operation.name]
    assert (procedure.parameters, procedure.columns) == (operation.parameters, operation.columns)
    command = cli.get_command(click.Context(cli), operation.command_name)
    assert command is not None and command.help.startswith(operation.summary)
    for parameter in command.params:
        if parameter.name == "dry_run":
            assert (parameter.opts, parameter.secondary_opts) == (["--dry-run"], ["--apply"])


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_what_deletes_reports_first_and_nothing_else_does(operation: DeclaredOperation) -> None:
    assert (REPORTS_FIRST in operation.parameters) == (operation.effect is OperationEffect.DELETES)
    if operation.effect is OperationEffect.READS:
        assert ACTS_AT_ONCE not in operation.parameters


def test_texts_have_the_ages_that_hold_by_default() -> None:
    said = {
        parameter.name: parameter.unset
        for operation in (EXPIRE, VACUUM)
        for parameter in operation.parameters
        if parameter.metavar == "AGE"
    }
    assert said == {
        "older_than": f"{vacuum.VACUUM_DEFAULT_AGE.days} days",
        "dropped_older_than": f"{vacuum.VACUUM_DEFAULT_DROPPED_AGE.days} days",
    }
    assert f"{expire.EXPIRE_DEFAULT_AGE.days} days" in EXPIRE.parameters[1].text


def test_the_page_of_reference_has_all_parameters_and_columns() -> None:
    page = operation_list.page()
    for operation in EVERY:
        (part,) = (part for part in page.split("\n## ") if part.startswith(f"{operation.command_name}\n"))
        names = [parameter.name for parameter in operation.parameters] + [
            column.name for column in operation.columns
        ]
        assert all(f"| `{name}` |" in part for name in names)


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_what_a_command_requires_is_asked_for(operation: DeclaredOperation) -> None:
    """Also by a click that takes a default of None for a value that was given."""
    command = cli.get_command(click.Context(cli), operation.command_name)
    assert command is not None
    options = {
        parameter.name
        for parameter in operation.parameters
        if parameter.default is None and parameter.option is not None
    }
    if not options:
        return
    arguments = ["x" for param in command.params if isinstance(param, click.Argument)]
    with pytest.raises(click.MissingParameter) as missing:
        command.make_context(operation.command_name, arguments)
    assert missing.value.param is not None and {missing.value.param.name} == options
