"""A secret that is put anywhere in a statement, a property or a path is in no byte of a log, and in no audit."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, FunctionDefinition, ViewDefinition, col, engine
from lakelog.catalog.core.state import with_statement
from lakelog.cli.main import run
from lakelog.log.errors import LakelogError

SCHEMA = pa.schema([("id", pa.int64()), ("password", pa.string())])
NAMES = (
    "password",
    "fs.s3a.secret.key",
    "AWS_ACCESS_KEY_ID",
    "clientSecret",
    "sas_token",
    "http.credentials",
)

STATEMENTS: list[Callable[[str, str], str]] = [
    lambda name, secret: f"CREATE TABLE t OPTIONS (`{name}` '{secret}', user 'bob')",
    lambda name, secret: f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = '{secret}')",
    lambda name, secret: f'ALTER TABLE t SET TBLPROPERTIES ("{name}"="{secret}")',
    lambda name, secret: f"SET {name}={secret}",
    lambda name, secret: f"ALTER TABLE t SET TBLPROPERTIES ('jaas' = 'required {name}=\"{secret}\";')",
    lambda name, secret: f'SET conf.json = \'{{"{name}": "{secret}"}}\'',
    lambda name, secret: f"CREATE TABLE t OPTIONS (`{name}` r'x\\' '{secret}')",
    lambda name, secret: f"SELECT 1 -- {name}={secret}",
    lambda name, secret: f"CALL x({name.replace('.', '_')} => '{secret}')",
    lambda name, secret: f"SELECT * FROM csv.`s3a://KEY:{secret}@bucket/path`",
    lambda name, secret: f"SELECT * FROM csv.`s3a://KEY:ab/{secret}@bucket/path`",
    lambda name, secret: (
        f"SELECT * FROM json.`https://host/x?X-Amz-Credential=K&X-Amz-Signature={secret}&n=1`"
    ),
    lambda name, secret: f"SELECT * FROM json.`wasb://c@a/x?sv=2&sig={secret}`",
    lambda name, secret: f"ADD JAR s3a://KEY:{secret}@bucket/path.jar",
    lambda name, secret: f"{' ' * 4060}csv.`s3a://KEY:{secret}@bucket/path`",
]


def some_secret(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits + "+/", k=chance.randint(24, 40)))


@pytest.mark.parametrize("keep", ["normalized", "full", "none"])
def test_a_secret_is_in_no_byte_of_a_log_and_in_no_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keep: str
) -> None:
    chance, secrets = random.Random(7), []

    def secret() -> str:
        secrets.append(some_secret(chance))
        return secrets[-1]

    catalog = Catalog(str(tmp_path), writer={"user": "ann", "token": secret(), "job": f"pwd={secret()}"})
    for number, name in enumerate(NAMES):
        for statement in STATEMENTS:
            facts = with_statement({}, query=f"{name}={secret()}", text=statement(name, secret()), keep=keep)
            with engine.writing_as(facts):
                catalog.create_namespace(
                    f"n{number}", properties={name: secret()}
                ) if not catalog.namespace_exists(f"n{number}") else catalog.alter_namespace(
                    f"n{number}", set={name: secret(), "url": f"s3://K:{secret()}@b"}
                )
        properties = {name: secret(), "place": f"https://h/x?sig={secret()}"}
        table = catalog.create_table(f"n{number}.t", SCHEMA, properties=properties)
        table = table.alter([{"change": "set-property", "key": name, "value": secret()}])
        table = table.append(pa.table({"id": [1], "password": ["x"]}, schema=SCHEMA))
        table.delete(col("password") == secret())
        view = ViewDefinition(
            text="SELECT 1", columns=(), properties={name: secret()}, configs={name: secret()}
        )
        engine.create_view(catalog, f"n{number}.v", view)
    for use in (
        lambda: engine.create_view(
            catalog, "n0.w", ViewDefinition(text=f"TABLE csv.`s3a://K:{secret()}@b`", columns=())
        ),
        lambda: engine.create_function(
            catalog, "n0.f", FunctionDefinition(language="sql", body=f"'http://u:{secret()}@h'")
        ),
        lambda: engine.create_function(
            catalog, "n0.f", FunctionDefinition(language="java", body="X", resources=(("jar", f"s3://K:{secret()}@b/x"),))
        ),
        lambda: catalog.create_table("n0.u", SCHEMA, location=f"s3a://KEY:{secret()}@bucket/x"),
        lambda: catalog.register_table("n0.u", f"s3a://KEY:{secret()}@bucket/x"),
        lambda: catalog.load_table("n0.t").add_files(f"s3a://KEY:{secret()}@bucket/x"),
    ):  # fmt: skip
        with pytest.raises(LakelogError) as error:
            use()
        assert not any(text in str(error.value) for text in secrets)
    stored_data = b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "_log" in path.parts
    )
    assert [text for text in secrets if text.encode() in stored_data] == []
    for form in ([], ["--json"]):
        assert run(["audit", "--warehouse", str(tmp_path), *form]) == 0
        shown_text = "".join(capsys.readouterr())
        assert "ann" in shown_text
        assert [text for text in secrets if text in shown_text] == []


def test_what_is_no_secret_stays(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table("t", SCHEMA, properties={"key": "v", "sort.keys": "a=b", "password": "x"})
    assert dict(table.properties) == {"key": "v", "sort.keys": "a=b", "password": "***"}
    facts = with_statement({}, text="SELECT token FROM t WHERE password = 'x' AND key = 3", keep="full")
    assert facts["statement"] == "SELECT token FROM t WHERE password = '***' AND key = 3"
    facts = with_statement({}, text="SELECT token FROM t WHERE password = 'x' AND key = 3")
    assert facts["statement"] == "SELECT token FROM t WHERE password = ? AND key = ?"
