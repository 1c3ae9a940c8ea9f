"""Which stored code a session runs: what is refused, by which setting, and who wrote it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.spark.asking import Side, ask, reference
from tests.unit.spark.test_procedures import begin

from lakelog.catalog import Catalog, FunctionDefinition, ViewDefinition, engine
from lakelog.catalog.core.schema import StatedConstraint
from lakelog.log.errors import InvalidInput
from lakelog.spark.stored_code import StoredCodeRefused, runs_java

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect('java.lang.Runtime', 'getRuntime')",
        "SELECT Java_Method ('a', 'b')",
        "SELECT system.builtin.`reflect`/* no */ ('a', 'b')",
        "SELECT try_reflect('a', 'b') FROM t",
        'SELECT "reflect"(1)',
        "SELECT IDENTIFIER('ref' || 'lect')('a', 'b')",
        "SELECT * FROM IDENTIFIER(concat('a', (SELECT 'b')))(1)",
        "SELECT TRANSFORM(a) USING 'rm -rf /' AS (b) FROM t",
        'FROM t MAP a USING -- a comment\n "cat" AS b',
        "SELECT TRANSFORM(a) USING r'cat' FROM t",
        "SELECT TRANSFORM(a) USING $$cat$$ FROM t",
        "SELECT /*+ BROADCAST(t) */*, reflect('a', 'b') FROM t",
    ],
)
def test_a_text_that_calls_any_method_or_program_is_found(text):
    assert runs_java(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect, 'reflect(1)' FROM t -- reflect(1)",
        "SELECT transform(array(1), x -> x + 1) FROM a JOIN b USING (id)",
        "SELECT * FROM IDENTIFIER('a' || '.b') WHERE IDENTIFIER(c) > 1",
        "id > 0 AND name LIKE 'using ''x''' /* USING 'cat' */",
        "SELECT (1",
        "IDENTIFIER(",
    ],
)
def test_other_texts_are_not(text):
    assert runs_java(text) is None


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog(str(tmp_path), writer={"user": "mallory"})
    catalog.create_namespace("a")
    engine.create_function(catalog, "a.java", FunctionDefinition(language="java", body="evil.Class"))
    engine.create_function(catalog, "a.sql", FunctionDefinition(language="sql", body="1"))
    engine.create_function(catalog, "a.method", FunctionDefinition(language="sql", body="reflect('x', 'y')"))
    parameters = "a INT DEFAULT java_method('x', 'y')"
    engine.create_function(
        catalog, "a.args", FunctionDefinition(language="sql", body="a", parameters=parameters)
    )
    engine.create_function(
        catalog,
        "a.hidden",
        FunctionDefinition(language="sql", body="a -- no", parameters="a INT DEFAULT reflect('x', 'y')"),
    )
    overriding = {"sqlFunction.query": "SELECT reflect('x', 'y')"}
    engine.create_function(
        catalog, "a.other", FunctionDefinition(language="sql", body="1", properties=overriding)
    )
    bringing = {"spark.sql.catalog.c": "evil.Class", "spark.sql.ansi.enabled": "true"}
    engine.create_function(
        catalog, "a.brings", FunctionDefinition(language="sql", body="c.f(1)", configs=bringing)
    )
    engine.create_view(
        catalog, "a.brought", ViewDefinition(text="SELECT c.f(1)", columns=(), configs=bringing)
    )
    renamed_values = {f"view.sqlConfig.{key}": value for key, value in bringing.items()}
    engine.create_view(
        catalog, "a.prefixed", ViewDefinition(text="SELECT c.f(1)", columns=(), properties=renamed_values)
    )
    plain = {"spark.sql.ansi.enabled": "true"}
    engine.create_view(catalog, "a.set", ViewDefinition(text="SELECT 2", columns=(), configs=plain))
    engine.create_view(catalog, "a.view", ViewDefinition(text="SELECT 1", columns=()))
    engine.create_view(catalog, "a.script", ViewDefinition(text="SELECT TRANSFORM(1) USING 'sh'", columns=()))
    for name, sql in (("checked", "id < 9"), ("forged", "reflect('x', 'y')")):
        check = StatedConstraint(kind="check", name="small", columns=(("id",),), sql=sql)
        engine.commit_stage(
            catalog, engine.stage(catalog, "create", f"a.{name}", SCHEMA, constraints=[check])
        )
    catalog.create_table("a.plain", SCHEMA)
    return catalog


FUNCTIONS = ("java", "sql", "method", "args", "hidden", "other", "brings")
RELATIONS = ("view", "script", "brought", "prefixed", "set", "checked", "forged", "plain")
FOREIGN = {"java", "method", "args", "hidden", "other", "brings", "script", "brought", "prefixed", "forged"}


def refused(side, **more):
    """Return what a session refuses to use, by its name."""
    found = set()
    for method, names in (("load_function", FUNCTIONS), ("load_relation", RELATIONS)):
        own = {"case_sensitive": True, "runs": True} if method == "load_function" else {}
        for name in names:
            try:
                ask(side, method, identifier=["a", name], **own, **more)
            except StoredCodeRefused as error:
                assert "written by mallory, in version" in error.message, error.message
                found.add(name)
    return found


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (None, FOREIGN),
        ("sql", FOREIGN),
        ("none", {*FUNCTIONS, "view", "set", "script", "brought", "prefixed", "forged"}),
        ("all", set()),
    ],
)
def test_what_a_session_does_not_trust_is_refused_with_its_author(catalog, tmp_path, setting, names):
    side = Side(warehouse=str(tmp_path), **({} if setting is None else {"stored-code": setting}))
    assert refused(side) == names
    assert refused(side, transaction=begin(side)) == names


def test_what_is_only_looked_at_is_shown(catalog, tmp_path):
    side = Side(warehouse=str(tmp_path), **{"stored-code": "none"})
    for name in FUNCTIONS:
        found = ask(side, "load_function", identifier=["a", name], case_sensitive=True)
        assert found["function"]["body"] == catalog.load_function(("a", name)).body


def test_without_stored_code_a_table_with_checks_is_only_read(catalog, tmp_path):
    side = Side(warehouse=str(tmp_path), **{"stored-code": "none"})
    facts = ask(side, "load_relation", identifier=["a", "checked"])
    assert facts["computes"]
    with pytest.raises(
        StoredCodeRefused, match=r"the CHECK small, .* \(stored-code is none\)\. .* by mallory"
    ):
        ask(side, "may_compute", **reference(facts))
    assert "computes" not in ask(side, "load_relation", identifier=["a", "plain"])
    trusting = Side(warehouse=str(tmp_path))
    facts = ask(trusting, "load_relation", identifier=["a", "checked"])
    assert "computes" not in facts
    ask(trusting, "may_compute", **reference(facts))


def test_the_author_is_the_one_who_wrote_it_and_not_who_came_after(catalog, tmp_path):
    other_catalog = Catalog(str(tmp_path), writer={"user": "bob"})
    other_catalog.rename_view("a.script", "a.renamed")
    engine.create_view(other_catalog, "a.another", ViewDefinition(text="SELECT 2", columns=()))
    assert (engine.author_of_definition(catalog, "a.renamed", "view") or "").startswith("mallory, in version")
    engine.create_view(
        other_catalog, "a.renamed", ViewDefinition(text="SELECT 3", columns=()), or_replace=True
    )
    assert (engine.author_of_definition(catalog, "a.renamed", "view") or "").startswith("bob, in version")
    table = other_catalog.load_table("a.forged").create_tag("later")
    assert (engine.author_of_text(table, "reflect('x', 'y')") or "").startswith("mallory, in version 1 of")


def test_the_setting_is_checked(tmp_path):
    with pytest.raises(InvalidInput, match="stored-code is some, .* none, sql, all"):
        Side(warehouse=str(tmp_path), **{"stored-code": "some"})
