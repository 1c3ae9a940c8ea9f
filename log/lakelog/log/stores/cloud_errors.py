"""The meaning of failed requests to Google Cloud Storage and to Azure, by HTTP status and the store's own code.

obstore has both in the text of its errors alone. That text also has the request's URL, which may contain a signature.
So `answer_of` takes the status and the code from it, and the text is dropped: no error here quotes or chains it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakelog.log.errors import LakelogError, PermissionDenied, StorageError
from lakelog.log.stores.s3_errors import RefusedAnswer, error_code, http_status, response_of

REPEATABLE = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which a request is sent again, unless it has a condition."""

_STATUS = re.compile(
    r"status code: ([0-9]{3})|\(code: ([0-9]{3})\)|HTTP status [a-z ]{0,20}error \(([0-9]{3})"
)
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
# A name in a request's URL may contain such a host, but it comes after a single slash.
_OF_TOKEN = re.compile(
    r"token request|az account get-access-token"
    r"|://(?:169\.254\.169\.254|metadata\.google\.internal|oauth2\.googleapis\.com|login\.microsoftonline)"
)


@dataclass(frozen=True, slots=True)
class CloudWords:
    """The words of a cloud: its codes, and what its messages advise."""

    name: str
    absent: frozenset[str]
    """Codes of a 404 for an absent object."""
    no_bucket: frozenset[str]
    """Codes of a 404 for an absent bucket."""
    taken: frozenset[tuple[int, str]]
    """Status and code of a conditional put whose key is taken. An empty code stands for any code."""
    one_name: frozenset[str]
    """Codes of a 409 for an object at a folder's name, or below an object, with a hierarchical namespace."""
    retained: frozenset[tuple[int, str]]
    """Status and code of a put or a delete that a retention rule or a hold of the bucket refuses."""
    rights: str
    credentials: str
    endpoint_option: str
    no_rights: frozenset[str] = frozenset()
    """Codes of a 404 for a client without rights."""


GOOGLE = CloudWords(
    name="Google Cloud Storage",
    absent=frozenset({"NoSuchKey"}),
    no_bucket=frozenset({"NoSuchBucket"}),
    taken=frozenset({(412, "")}),
    one_name=frozenset(),
    retained=frozenset({(403, "RetentionPolicyNotMet"), (403, "ObjectUnderActiveHold")}),
    rights="storage.objects.get, create, delete and list",
    credentials="set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, or use a host with a "
    "service account",
    endpoint_option="gcs_endpoint",
)
AZURE = CloudWords(
    name="Azure Blob Storage",
    absent=frozenset({"BlobNotFound"}),
    no_bucket=frozenset({"ContainerNotFound", "FilesystemNotFound"}),
    taken=frozenset({(412, ""), (409, "BlobAlreadyExists")}),
    one_name=frozenset({"ResourceTypeMismatch", "PathConflict", "PathAlreadyExists", "ParentNotFound"}),
    retained=frozenset({(409, "BlobImmutableDueToPolicy")}),
    rights="the role Storage Blob Data Contributor",
    credentials="set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_CLIENT_ID with its tenant and secret, "
    "AZURE_USE_AZURE_CLI=true after az login, or use a host with a managed identity",
    endpoint_option="azure_endpoint",
    no_rights=frozenset({"ResourceNotFound"}),
)


class NoAnswer(ConnectionError):
    """There was no answer, or only a part of one. The request may have been applied."""


class NoCredentials(RefusedAnswer):
    """The client has no credentials that it can use, so it has sent nothing to the store.

    If `may_pass`, the server that gives out credentials is overloaded.
    """

    may_pass = False


def answer_of(operation: str, error: Exception, path: str, resent: int) -> Exception:
    """Return a failure of obstore as an error with status and code alone. `path` is the object's name in the bucket."""
    if isinstance(error, (LakelogError, RefusedAnswer)):
        return error
    text = str(error).partition("Debug source:")[0]
    if any(form.search(path) for form in (_STATUS, _CODE, _OF_TOKEN)):
        # obstore quotes names, and this one looks like a status. Other names stay: a short one is in other words too.
        text = text.replace(path, "")
    is_of_token = _OF_TOKEN.search(text) is not None
    status = _STATUS.search(text)
    number = next((group for group in status.groups() if group), "") if status is not None else ""
    if is_of_token:
        failure = NoCredentials(operation, 401, "no credentials", {}, 0)
        failure.may_pass = bool(number) and int(number) in REPEATABLE
        return failure
    if status is None:
        return NoAnswer(f"{operation}: {type(error).__name__}")
    code = _CODE.search(text, status.end())
    return RefusedAnswer(operation, int(number), code[1] if code else "", {}, resent)


def is_absent(error: Exception, words: CloudWords) -> bool:
    """Return whether the answer says that the object does not exist, though its bucket does."""
    return http_status(error) == 404 and error_code(error) in words.absent


def is_taken(error: Exception, words: CloudWords) -> bool:
    """Return whether a conditional put was refused because the key is taken, maybe by an earlier try of ours."""
    status = http_status(error)
    return status is not None and not words.taken.isdisjoint({(status, ""), (status, error_code(error))})


def meaning(
    verb: str, location: str, error: Exception, words: CloudWords, *, bucket: str, endpoint: str
) -> LakelogError:
    """Return the meaning of a failure to `verb` the object, or the prefix, at `location`."""
    if isinstance(error, LakelogError):
        return error
    status, code = http_status(error), error_code(error)
    first_answer = not response_of(error).get("ResponseMetadata", {}).get("RetryAttempts", 0)
    at_server = f" at {endpoint}" if endpoint else ""
    if isinstance(error, NoCredentials):
        return PermissionDenied(
            f"cannot {verb} {location}: no usable credentials for {words.name}; {words.credentials}",
            location=location,
        )
    if status is None:
        return StorageError(
            f"cannot {verb} {location}: no answer from the store{at_server} ({type(error).__name__}); check the "
            "endpoint and the network, and try again",
            location=location,
        )
    if status == 404 and code in words.no_bucket:
        return StorageError(
            f"cannot {verb} {location}: there is no bucket or container {bucket!r}{at_server}; create it, or correct "
            "the location",
            location=location,
            without_effect=first_answer,
        )
    if (status, code) in words.retained:
        return StorageError(
            f"cannot {verb} {location}: a retention rule or a hold of the bucket {bucket!r} keeps it ({code}); lakelog "
            "replaces some objects, and maintenance deletes others: remove the rule",
            location=location,
            without_effect=first_answer,
        )
    if status in (401, 403) or (status == 404 and code in words.no_rights):
        message = (
            f"may not {verb} {location}: the store refuses these credentials ({code or status}); check them, and "
            f"grant {words.rights} there"
        )
        if first_answer:
            return PermissionDenied(message, location=location)
        return StorageError(message, location=location)
    if status == 404:
        return StorageError(
            f"cannot {verb} {location}: the server{at_server} answered {code or 404}, but not as {words.name}; check "
            f"the option {words.endpoint_option}",
            location=location,
            without_effect=first_answer,
        )
    return StorageError(
        f"cannot {verb} {location}: the store{at_server} answered {status} ({code}); try again",
        location=location,
        without_effect=first_answer and 400 <= status < 500 and status not in (408, 409, 412, 429),
    )
