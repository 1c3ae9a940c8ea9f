"""Secrets in texts and properties: what is masked, and what stays."""

from __future__ import annotations

import pytest

from lakelog.log.decoding import DEPTH_MAX
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.log.secrets import LEVELS_MAX, is_secret, masked, masked_facts, masked_properties


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("password=x1 and more", "password=*** and more"),
        ("OPTIONS (password 'it''s', user 'bob')", "OPTIONS (password '***', user 'bob')"),
        ("'fs.s3a.secret.key' = \"a\\\"b\"", "'fs.s3a.secret.key' = \"***\""),
        ("SELECT * FROM csv.`s3a://KEY:SEC/R+T@bucket/p`", "SELECT * FROM csv.`s3a://***@bucket/p`"),
        ("https://h/p?X-Amz-Signature=abc&list=2", "https://h/p?X-Amz-Signature=***&list=2"),
        ("wasb://data@account.blob/x?sv=1&sig=ab%2Fc", "wasb://data@account.blob/x?sv=1&sig=***"),
        ('{"token": "x", "n": 1}', '{"token": "***", "n": 1}'),
        ("call(api_key => 'x')", "call(api_key => '***')"),
        ("at AKIAIOSFODNN7EXAMPLE.", "at ***."),
        ("WHERE password = ?", "WHERE password = ?"),
        ("'jaas' = 'required user=\"u\" password=\"x y\";'", "'jaas' = 'required user=\"u\" password=\"***\";'"),
        ("OPTIONS (conf 'a=1 password=xy')", "OPTIONS (conf 'a=1 password=***')"),
        ('{\\"password\\": \\"x\\", \\"n\\": 1}', '{\\"password\\": \\"***\\", \\"n\\": 1}'),
        ('{"credentials": {"a": ["x", {}]}, "n": 1}', '{"credentials": "***", "n": 1}'),
        ('{"pin.password": 1234, "n": 1}', '{"pin.password": "***", "n": 1}'),
        ("password = 'a' || r'b\\' 'c', n = 1", "password = '***', n = 1"),
        ("password = $a$it's$a$, n = 1", "password = ***, n = 1"),
        ("{b'password': b'x', 'n': 1}", "{b'password': '***', 'n': 1}"),
        ("Map(password -> x, n -> 1)", "Map(password -> ***, n -> 1)"),
        ("SET VAR password := 'x'", "SET VAR password := '***'"),
        ("https://u:p@ss@host/a@b", "https://***@host/a@b"),
        ("at s3a%3A%2F%2FKEY%3aSECRET%40bucket%2Fp", "at s3a%3A%2F%2F***%40bucket%2Fp"),
        ("at s3a%3A%2F%2Fbucket%2Fa%40b", "at s3a%3A%2F%2Fbucket%2Fa%40b"),
        ("u=https%3A%2F%2Fh%2Fp%3Fsig%3Dabc%26n%3D1", "u=https%3A%2F%2Fh%2Fp%3Fsig%3D***%26n%3D1"),
        ("Authorization: Bearer abc.def, x", "Authorization: Bearer ***, x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END"),
        ("SELECT token, sort_key FROM s3://b/a@1 WHERE key=3", "SELECT token, sort_key FROM s3://b/a@1 WHERE key=3"),
    ],
)  # fmt: skip
def test_values_of_secret_names_and_keys_in_urls_are_masked(text: str, kept: str) -> None:
    assert masked(text) == masked(kept) == kept


@pytest.mark.parametrize(
    "name",
    [
        "password", "db.Passwd", "fs.s3a.access.key", "awsSecretAccessKey", "AWS_ACCESS_KEY_ID", "clientSecret",
        "apiKey", "sas_token", "oauth.token", "credentials", "X-Amz-Signature", "encryption.key",
    ],
)  # fmt: skip
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "primary.key",
        "sort.keys",
        "author",
        "tokenizer",
        "design",
        "lakelog.write.delete.mode",
        "comment",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret(name)


def test_properties_and_facts_keep_what_is_no_secret() -> None:
    assert masked_properties({"token": "x", "url": "http://u:p@h", "empty.secret": "", "k": "v"}) == {
        "token": "***", "url": "http://***@h", "empty.secret": "", "k": "v",
    }  # fmt: skip
    assert masked_facts({"user": "ann", "conf": {"password": "x", "n": [1, "pwd=x"]}}) == {
        "user": "ann", "conf": {"password": "***", "n": [1, "pwd=***"]},
    }  # fmt: skip
    assert masked_facts({"credentials": {"user": "ann", "more": ["x", {"y": "z"}], "tokens": 7}}) == {
        "credentials": {"user": "***", "more": ["***", {"y": "***"}], "tokens": 7},
    }  # fmt: skip
    kept = {"note": '{"tokens": 5, "sas": "x"}', "comment": "token = hash", "query": "WHERE token = 'a'"}
    assert (
        masked_properties({"jaas": 'user="u" password="p";'} | kept)
        == {"jaas": 'user="u" password="***";'} | kept
    )


def test_facts_are_masked_as_deep_as_a_commit_can_have_them() -> None:
    assert LEVELS_MAX >= DEPTH_MAX


def test_errors_show_none() -> None:
    error = NotFound("nothing at s3a://KEY:SECRET@b/x?X-Amz-Signature=abc: password=y")
    assert "SECRET" not in str(error) + error.message
    assert "abc" not in str(error) and "=y" not in str(error)
    assert "SECRET" not in repr(error) and repr(InvalidInput("it's")) == 'InvalidInput("it\'s")'
    assert str(InvalidInput("plain")) == "plain" and str(InvalidInput()) == ""


@pytest.mark.parametrize("piece", ["x", ".", "a=", "'", '"a', "?a", "a '", "'a':", "a:", "password ", "a\n",
    "\\", "a\\\"", "://x:", "%3A%2F%2F", '"password":{', "password='a' ", "-----BEGIN PRIVATE KEY-----"])  # fmt: skip
def test_a_long_text_of_any_kind_is_looked_through_once(piece: str) -> None:
    """What looks at a text again from each of its places would not come to an end here."""
    masked(piece * (300_000 // len(piece)))
