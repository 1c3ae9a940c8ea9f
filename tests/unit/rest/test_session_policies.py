"""The policies of credentials for a table: their exact texts, and that no name of a folder widens them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.rest.vending import RoleSettings, TableGrant, reaches, session_policy
from lakelog.rest.vending.policies import POLICY_SIZE_MAX

READS = TableGrant()
WRITES = TableGrant(writes=True)
DELETES = TableGrant(writes=True, deletes=True)
ROLE = "arn:aws:iam::123456789012:role/lake"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab"


def policy_text(actions: str, bucket: str, folder: str) -> str:
    return (
        '{"Version":"2012-10-17","Statement":['
        f'{{"Effect":"Allow","Action":[{actions}],"Resource":["arn:aws:s3:::{bucket}/{folder}data/*",'
        f'"arn:aws:s3:::{bucket}/{folder}metadata/*"]}},'
        f'{{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::{bucket}",'
        f'"Condition":{{"StringLike":{{"s3:prefix":["{folder}data/*","{folder}metadata/*"]}}}}}}]}}'
    )


@pytest.mark.parametrize(
    ("grant", "actions"),
    [
        (READS, '"s3:GetObject"'),
        (WRITES, '"s3:GetObject","s3:PutObject","s3:AbortMultipartUpload"'),
        (DELETES, '"s3:GetObject","s3:PutObject","s3:AbortMultipartUpload","s3:DeleteObject"'),
    ],
)
def test_a_policy_names_the_folders_of_files_alone(grant: TableGrant, actions: str) -> None:
    assert session_policy("s3://lake/w/n-a/t-b", grant) == policy_text(actions, "lake", "w/n-a/t-b/")
    assert session_policy("s3://lake", grant) == policy_text(actions, "lake", "")


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("w*", "w${*}"),
        ("w?", "w${?}"),
        ("w$", "w${$}"),
        ("*", "${*}"),
        ("${aws:username}", "${$}{aws:username}"),
        ("${*}", "${$}{${*}}"),
        ("$${*}?", "${$}${$}{${*}}${?}"),
        ("a/*/b", "a/${*}/b"),
        ('a"],"Resource":["*', 'a\\"],\\"Resource\\":[\\"${*}'),
        ("a\\u002a", "a\\\\u002a"),
        ("größe 水", "gr\\u00f6\\u00dfe \\u6c34"),
        ("{aws:userid}", "{aws:userid}"),
        ("a%2Ab+c", "a%2Ab+c"),
    ],
)
def test_the_characters_of_a_folder_mean_themselves(folder: str, pattern: str) -> None:
    policy = session_policy(f"s3://lake/{folder}/t", READS)
    assert policy == policy_text('"s3:GetObject"', "lake", f"{pattern}/t/")


def expression(pattern: str) -> re.Pattern[str]:
    """Return a policy's pattern as an expression, by AWS's rules. Fails for a fact of the request."""
    parts = re.findall(r"\$\{[^}]*\}|.", pattern, re.DOTALL)
    wildcards = {"*": ".*", "?": "."}
    for part in parts:
        assert not part.startswith("${") or part in ("${*}", "${?}", "${$}"), part
    return re.compile(
        "".join(
            re.escape(part[2]) if part.startswith("${") else wildcards.get(part, re.escape(part))
            for part in parts
        ),
        re.DOTALL,
    )


FOLDERS = st.text(alphabet=st.sampled_from(list("ab*?${}:aws/\\\"' é水")), min_size=1, max_size=12)


@given(folder=FOLDERS, other=FOLDERS, rest=FOLDERS)
def test_a_policy_reaches_no_other_folder(folder: str, other: str, rest: str) -> None:
    statements = json.loads(session_policy(f"s3://lake/{folder}", DELETES))["Statement"]
    objects = [expression(text.removeprefix("arn:aws:s3:::lake/")) for text in statements[0]["Resource"]]
    prefixes = [expression(text) for text in statements[1]["Condition"]["StringLike"]["s3:prefix"]]
    tops = (f"{folder}/data/", f"{folder}/metadata/")
    for top in (folder, other):
        for name in ("data/", "metadata/", "_log/", "", "data-", "datax/"):
            key = f"{top}/{name}{rest}"
            for patterns in (objects, prefixes):
                assert any(pattern.fullmatch(key) for pattern in patterns) == key.startswith(tops), key


def test_the_evaluation_of_these_tests_finds_a_pattern_that_is_too_wide() -> None:
    assert expression("w*/data/*").fullmatch("wide/data/x")
    assert not expression("w${*}/data/*").fullmatch("wide/data/x")
    assert expression("w${*}/data/*").fullmatch("w*/data/x")
    with pytest.raises(AssertionError):
        expression("${aws:username}/data/*")


def test_buckets_are_named_in_the_part_of_aws_that_the_role_is_in() -> None:
    for role, partition in (
        (ROLE, "aws"),
        ("arn:aws-cn:iam::123456789012:role/lake", "aws-cn"),
        ("arn:aws-us-gov:iam::123456789012:role/lake", "aws-us-gov"),
        ("arn:minio:iam:::role/lake-of-the-test", "aws"),
    ):
        settings = RoleSettings(arn=role)
        settings.check()
        assert settings.partition == partition
    assert '"arn:aws-cn:s3:::lake/t/data/*"' in session_policy("s3://lake/t", READS, partition="aws-cn")


def test_keys_of_a_bucket_may_be_used_by_s3_alone() -> None:
    other = "arn:aws-cn:kms:cn-north-1:123456789012:key/5678"
    for grant, actions in ((READS, ["kms:Decrypt"]), (WRITES, ["kms:Decrypt", "kms:GenerateDataKey"])):
        *_, statement = json.loads(session_policy("s3://lake/t", grant, kms_keys=(KEY, other)))["Statement"]
        services = ["s3.cn-north-1.amazonaws.com.cn", "s3.eu-west-1.amazonaws.com"]
        assert statement == {
            "Effect": "Allow",
            "Action": actions,
            "Resource": [KEY, other],
            "Condition": {"StringEquals": {"kms:ViaService": services}},
        }


def test_a_place_that_is_too_long_is_refused() -> None:
    long = "w" * 400
    assert len(session_policy(f"s3://lake/{long}", DELETES)) <= POLICY_SIZE_MAX
    with pytest.raises(Unsupported, match="AWS takes 2,048"):
        session_policy(f"s3://lake/{long * 2}", READS)
    with pytest.raises(Unsupported):
        session_policy(f"s3://lake/{'水' * 200}", READS)


@pytest.mark.parametrize(
    "settings",
    [
        RoleSettings(arn="lake"),
        RoleSettings(arn="arn:aws:iam::1:role"),
        RoleSettings(arn=f"{ROLE}*"),
        RoleSettings(arn=f"{ROLE} x"),
        RoleSettings(arn=ROLE, kms_keys=("alias/lake",)),
        RoleSettings(arn=ROLE, kms_keys=(KEY, f"{KEY}*")),
        RoleSettings(arn=ROLE, kms_keys=("arn:aws:kms:eu-west-1:123456789012:key/${aws:userid}",)),
        RoleSettings(arn=ROLE, kms_keys=("arn:aws:kms:eu-west-1:123456789012:alias/lake",)),
    ],
)
def test_texts_that_are_no_role_or_no_key_are_refused(settings: RoleSettings) -> None:
    with pytest.raises(InvalidInput, match=r"is no role|is no key"):
        settings.check()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://b/t/data/w", True),
        ("s3://b/t/metadata/w/", True),
        ("s3://b/t/data", True),
        ("s3://b/t/w", False),
        ("s3://b/t/_log/w", False),
        ("s3://b/t/database/w", False),
        ("s3://b/t", False),
        ("s3://b/tt/data/w", False),
        ("s3://c/t/data/w", False),
    ],
)
def test_a_policy_for_a_table_reaches_all_in_two_folders(place: str, expected: bool) -> None:
    for url in ("s3://b/t", "s3://b/t/"):
        assert reaches(url, place) is expected
