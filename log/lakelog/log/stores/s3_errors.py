"""The meaning of failed S3 requests from either client, by HTTP status and S3's own code.

Both clients raise errors whose `response` is a dictionary like the AWS SDK's. The server's own text is never
quoted, because it could contain credentials.
"""

from typing import Any

from lakelog.log.errors import LakelogError, PermissionDenied, StorageError

_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
}
_REFUSED = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "XAdminUserNotFound",
}
ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
ONE_NAME = {
    *(
        "ExistingObjectIsDirectory",
        "ObjectParentIsFile",
        "ErrDirectoryNotEmpty",
        "DirectoryObjectContainsData",
    ),
    *(
        "ObjectExistsAsPrefix",
        "XMinioObjectExistsAsDirectory",
        "XMinioObjectExistsAsPrefix",
        "XMinioParentIsObject",
    ),
}
"""Errors of servers over folders (versitygw, MinIO) if an object's name is also a prefix of others."""


class RefusedAnswer(Exception):
    """An unsuccessful answer to lakelog's own client; `response` is like that of the AWS SDK's errors."""

    def __init__(self, operation: str, status: int, code: str, headers: dict[str, str], resent: int) -> None:
        super().__init__(f"{operation} was answered with {status} ({code})")
        self.response = {
            "Error": {"Code": code},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers, "RetryAttempts": resent},
        }


def http_status(error: BaseException) -> int | None:
    """Return the status of the server's answer, None if there was none."""
    status = response_of(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None


def error_code(error: BaseException) -> str:
    """Return S3's code for the failure, such as NoSuchKey; empty if the answer had none."""
    return str(response_of(error).get("Error", {}).get("Code", ""))


def are_credentials_unusable(error: BaseException) -> bool:
    """Return whether a refusal is about the credentials themselves, not about their rights."""
    return error_code(error) in _REFUSED or type(root(error)).__name__ in {*_NO_CREDENTIALS, "NoCredentials"}


def root(error: BaseException) -> BaseException:
    """Return the client library's own exception, which s3fs wraps in varying exceptions."""
    depth = 0
    while error.__cause__ is not None and depth < 8:
        error = error.__cause__
        depth += 1
    return error


def response_of(error: BaseException) -> dict[str, Any]:
    for candidate in (error, error.__cause__, root(error)):
        response = getattr(candidate, "response", None)
        if isinstance(response, dict):
            return response
    return {}


def _resent(error: BaseException) -> int:
    return int(response_of(error).get("ResponseMetadata", {}).get("RetryAttempts", 0))


def meaning(verb: str, location: str, error: Exception, *, bucket: str, endpoint: str | None) -> LakelogError:
    """Return the meaning of a failure to `verb` the object, or the prefix, at `location`."""
    if isinstance(error, LakelogError):
        return error
    status, code, name = http_status(error), error_code(error), type(root(error)).__name__
    # The client library may have resent, so an earlier attempt may have been applied before this answer.
    first_answer = _resent(error) == 0
    at_server = f" at {endpoint}" if endpoint else ""
    if name in _NO_CREDENTIALS:
        return PermissionDenied(
            f"cannot {verb} {location}: no usable AWS credentials ({name}); set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            location=location,
        )
    if status == 404 and code == "NoSuchBucket":
        return StorageError(
            f"cannot {verb} {location}: there is no bucket {bucket!r}{at_server}; create it, or correct the "
            "location or the endpoint",
            location=location,
            without_effect=first_answer,
        )
    if code == "RequestTimeTooSkewed":
        return StorageError(
            f"cannot {verb} {location}: the clock of this host is too far from that of the store{at_server} ({code}); "
            "set it right",
            location=location,
            without_effect=first_answer,
        )
    if status == 301 or code in ELSEWHERE:
        return StorageError(
            f"cannot {verb} {location}: the bucket is in another region ({code or status}); correct the region, "
            "or the endpoint",
            location=location,
            without_effect=first_answer,
        )
    if status in (401, 403) or code in _REFUSED:
        message = (
            f"may not {verb} {location}: the store refuses these credentials ({code or status}); check them, and "
            "grant s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there"
        )
        if first_answer:
            return PermissionDenied(message, location=location)
        return StorageError(message, location=location)
    if status == 501:
        return StorageError(
            f"cannot {verb} {location}: the server{at_server} does not support it (501); use one that has conditional "
            "writes (If-None-Match)",
            location=location,
            without_effect=first_answer,
        )
    if status is None:
        return StorageError(
            f"cannot {verb} {location}: no answer from the store{at_server} ({name}); check the endpoint and the "
            "network, and try again",
            location=location,
        )
    if status == 404:
        return StorageError(
            f"cannot {verb} {location}: the server{at_server} answered {code or 404}, but not as an S3 server; "
            "check the endpoint",
            location=location,
            without_effect=first_answer,
        )
    return StorageError(
        f"cannot {verb} {location}: the store{at_server} answered {status} ({code}); try again",
        location=location,
        without_effect=first_answer and 400 <= status < 500 and status not in (408, 409, 412, 429),
    )
