"""Secrets in texts and properties are masked, and other text stays."""

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
    "form",
    [
        "there is no table {}: drop it, or choose another name",
        "{} was dropped, and its name is still there",
        "{}: there is no such table. The tables are {}, b and c",
        "cannot add {}: it is of type string",
        "there are two columns {} and {}, say which (one of them is {})",
        "a {} {} is not known",
    ],
)
@pytest.mark.parametrize("name", ["secret", "token", "password", "api_key", "credentials"])
@pytest.mark.parametrize("quote", ["`", "`a`.`", "`a.b`.`c`.`"])
def test_names_of_tables_and_columns_hide_nothing_of_a_message(form: str, name: str, quote: str) -> None:
    named_text = f"{quote}{name}`"
    text = form.replace("{}", named_text)
    assert masked(text) == text


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quoted_name_that_ends_a_clause_hides_nothing_of_the_next(quote: str) -> None:
    text = f"there is no saved cut {quote}token{quote}: the saved cuts are monday, secret"
    assert masked(text) == text
    text = f"cannot drop {quote}password{quote}: a clone needs it"
    assert masked(text) == text


@pytest.mark.parametrize(
    "value", ["hunter2", "'hunter two'", '"hunter two"', "12 34", "hunter", "{'a': 'hunter'}"]
)
@pytest.mark.parametrize(
    "form",
    [
        "{{'password': {}}}",
        '{{"a": 1, "password": {}}}',
        "  'password': {}\n",
        "it says {{'token': {}}}",
        "password={}",
        "'password' = {}",
    ],
)
def test_values_of_quoted_names_are_hidden_all_the_same(form: str, value: str) -> None:
    text = masked(form.format(value))
    assert "hunter" not in text and "12" not in text


@pytest.mark.parametrize(
    "text",
    [
        "sent 'X-Vault-Token': Bearer hunter.x",
        "sent 'X-Vault-Token': Basic hunter",
        "the options 'password': hunter, 'user': 'bob'",
        "in 'conf 'password': hunter' and more",
        "map(`password`: 'hunter two')",
        "'token'=Bearer hunter",
    ],
)
def test_values_after_a_word_and_a_quoted_name_are_hidden(text: str) -> None:
    shown_text = masked(text)
    assert "hunter" not in shown_text


def test_words_that_are_a_value_in_a_mapping_are_hidden() -> None:
    for text in (
        "  'password': correct horse",
        "{'password': correct horse}",
        "a: 1, 'password': correct horse",
    ):
        assert "correct" not in masked(text)


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
