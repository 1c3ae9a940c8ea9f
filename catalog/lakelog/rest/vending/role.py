"""Sessions of a role, by AWS's Security Token Service (STS) or a service like it.

The client is botocore, which comes with s3fs. The server's own credentials come from its usual chain. Rule: an error
has the service's code, and the first line of its words without the server's own secrets. The lines after it may
quote the request.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.engine import package
from lakelog.log.errors import InvalidInput, StorageError, Unsupported
from lakelog.log.secrets import MASK, masked
from lakelog.rest.vending.credentials import RoleUnavailable, TableCredentials
from lakelog.rest.vending.policies import NO_RIGHTS

DURATION_S = 3600
DURATION_MIN_S, DURATION_MAX_S = 900, 43_200
"""The shortest and the longest life of a session, by AWS's rules. A role may have a shorter limit."""

CONNECT_TIMEOUT_S, READ_TIMEOUT_S, ATTEMPTS_MAX = 3, 7, 2
"""A request for credentials takes a thread that answers, for 20 seconds at most."""

_ROLE = re.compile(r"arn:[a-z0-9-]+:[^\s*?$]{1,2000}")
_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9=,.@_-]")
_OF_POLICIES = ("PackedPolicyTooLarge", "MalformedPolicyDocument")
_WORDS_MAX = 300
_LOGGER = logging.getLogger("lakelog.rest")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSettings:
    """A role and its sessions, as plain values that a process can hand to another."""

    arn: str
    duration_s: int = DURATION_S
    endpoint: str | None = None
    """The address of the service. By default it is AWS's, or as AWS's own settings say."""
    region: str | None = None
    kms_keys: tuple[str, ...] = ()
    """The keys of KMS by which the bucket's objects are encrypted."""

    @property
    def partition(self) -> str:
        """The part of AWS that the role is in. Other servers name buckets as AWS's first part does."""
        partition = self.arn.split(":")[1]
        return partition if partition.startswith("aws") else "aws"

    def check(self) -> None:
        """Raise InvalidInput for texts that are no role, or no key."""
        if _ROLE.fullmatch(self.arn) is None or len(self.arn) < 20:
            raise InvalidInput(
                f"{self.arn!r} is no role: give its ARN, as arn:aws:iam::123456789012:role/NAME"
            )
        for key in self.kms_keys:
            if _KEY.fullmatch(key) is None:
                raise InvalidInput(
                    f"{key!r} is no key: give its ARN, as arn:aws:kms:eu-west-1:123456789012:key/ID, and no alias"
                )


class AssumedRole:
    """A role that the server may assume. Threads may share it."""

    def __init__(self, settings: RoleSettings) -> None:
        """Make no request. Raises InvalidInput if settings are missing, and Unsupported without botocore."""
        settings.check()
        self.settings = settings
        package("botocore", "a server that hands out credentials", "s3fs", "s3")
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import get_session

        _quiet_botocore()
        self._session = get_session()
        timeouts = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"total_max_attempts": ATTEMPTS_MAX, "mode": "standard"},
        )
        try:
            self.region: str | None = settings.region or self._session.get_config_variable("region")
            self._client = self._session.create_client(
                "sts", region_name=settings.region, endpoint_url=settings.endpoint, config=timeouts
            )
        except (BotoCoreError, ValueError) as error:
            raise InvalidInput(
                f"the role {settings.arn} cannot be assumed ({type(error).__name__}): check the region, the "
                "profile and the address of STS"
            ) from None

    def check(self) -> None:
        """Assume the role for a session without rights. Raises as `session`."""
        self.session(NO_RIGHTS, "lakelog-check")

    def session(self, policy: str, name: str) -> TableCredentials:
        """Return credentials of a new session. Its log at AWS has `name`. Makes a request.

        Raises StorageError if it is refused, Unsupported if the policy is, and RoleUnavailable if nothing answers.
        """
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            answer = self._client.assume_role(
                RoleArn=self.settings.arn,
                RoleSessionName=_NOT_IN_NAMES.sub("-", name)[:64],
                DurationSeconds=self.settings.duration_s,
                Policy=policy,
            )
            keys = answer["Credentials"]
            return TableCredentials(
                access_key_id=str(keys["AccessKeyId"]),
                secret_access_key=str(keys["SecretAccessKey"]),
                session_token=str(keys["SessionToken"]),
                expires_at_ms=round(keys["Expiration"].timestamp() * 1000),
            )
        except ClientError as error:
            refusal = error.response.get("Error", {})
            if str(refusal.get("Code")).startswith(_OF_POLICIES):
                raise self._unsupported(refusal) from None
            text = f"{self._host} refused it ({refusal.get('Code')}: {self._words(refusal.get('Message'))})"
            is_answered = True
        except (BotoCoreError, ResponseParserError) as error:
            # An answer that cannot be parsed is quoted in the error, with the credentials in it.
            text, is_answered = f"{self._host} gave no answer ({type(error).__name__})", False
        except (KeyError, AttributeError, TypeError, ValueError, OverflowError):
            text, is_answered = f"the answer of {self._host} has no credentials", True
        message = f"there are no credentials of the role {self.settings.arn}: {text}"
        _LOGGER.error("%s", message)
        # Without a cause: the library's error has the whole answer.
        if not is_answered:
            raise RoleUnavailable(message)
        raise StorageError(f"{message}. Correct that at the server, or try again", location="")

    def _unsupported(self, refusal: Any) -> Unsupported:
        """Return the error for a policy that is refused: another request for the same table would be, too."""
        text = f"{self._host} takes no policy for this table ({refusal['Code']}: {self._words(refusal.get('Message'))})"
        _LOGGER.error("%s", text)
        return Unsupported(f"there are no credentials: {text}. Use credentials of your own")

    @property
    def _host(self) -> str:
        return str(self._client.meta.endpoint_url).partition("://")[2].rpartition("@")[2]

    def _words(self, message: Any) -> str:
        """Return the first line of a message, without secrets."""
        from botocore.exceptions import BotoCoreError, ClientError

        line = next(iter(str(message or "").splitlines()), "")
        try:
            own_keys = self._session.get_credentials()
            frozen_keys = None if own_keys is None else own_keys.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            return f"its words are not shown, because the server's own secrets are not known: {type(error).__name__}"
        for secret in () if frozen_keys is None else frozen_keys[:3]:
            line = line.replace(secret, MASK) if secret else line
        return "".join(character for character in masked(line) if character.isprintable())[:_WORDS_MAX]


def _quiet_botocore() -> None:
    """Keep botocore from logging whole requests and answers at level DEBUG, because these have credentials."""
    roots = ("botocore", "aiobotocore")
    loggers = [logging.getLogger(root) for root in roots]
    # A logger below them may have been given a level of its own.
    loggers += [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and logger.level and name.partition(".")[0] in roots
    ]
    for logger in loggers:
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
