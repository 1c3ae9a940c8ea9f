"""A bucket's own settings for objects: versions, locks, lifecycle rules; and multipart uploads.

An answer that may not be read, or that a server does not have, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakelog.log.doctor.report import CheckVerdict, StoreCheck, judged, unknown
from lakelog.log.errors import LakelogError
from lakelog.log.stores.s3_errors import error_code, http_status
from lakelog.log.stores.s3_store import PART_SIZE_BYTES, S3Store

PART_SIZE_MIN_BYTES = 5 * 1024 * 1024  # from S3's own definition
SLOW_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects cannot be read until they are restored."""

OWN_PREFIX = "use a bucket, or a prefix, that the rule does not reach"


def server(store: S3Store) -> str:
    """Return the server's name for itself; empty if it has none."""
    try:
        answer = store.call("head_bucket")
    except Exception as error:
        answer = getattr(error.__cause__ or error, "response", None) or {}
    return str(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("server", ""))


def versioning(store: S3Store) -> StoreCheck:
    name = "versioning"

    def of(answer: Any) -> StoreCheck:
        status = answer.get("Status", "")
        if status != "Enabled":
            return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what=f"{status.lower() or 'off'}")
        mfa = " and can be removed with MFA only" if answer.get("MFADelete") == "Enabled" else ""
        return StoreCheck(
            name=name,
            verdict=CheckVerdict.NOTE,
            what=f"on: what lakelog deletes or replaces stays as a noncurrent version{mfa}, and takes space",
            todo="add a lifecycle rule with NoncurrentVersionExpiration, as long as you want to be able to go back",
        )

    return _asked(name, "s3:GetBucketVersioning", lambda: store.call("get_bucket_versioning"), of)


def object_lock(store: S3Store) -> StoreCheck:
    name = "object lock"

    def of(answer: Any) -> StoreCheck:
        lock = answer.get("ObjectLockConfiguration", {})
        retention = lock.get("Rule", {}).get("DefaultRetention", {})
        if lock.get("ObjectLockEnabled") != "Enabled":
            return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what="off")
        if not retention:
            return StoreCheck(
                name=name,
                verdict=CheckVerdict.NOTE,
                what="on, without a default retention: no object is locked",
            )
        span = f"{retention['Days']} days" if retention.get("Days") else f"{retention.get('Years')} years"
        return StoreCheck(
            name=name,
            verdict=CheckVerdict.WARNING,
            what=f"on, {retention.get('Mode', '').lower()} for {span}: what expire and vacuum delete takes space until "
            "then, and so does each version of a hint",
            todo="remove the default retention: S3 also refuses plain writes to such a bucket",
        )

    return _asked(
        name,
        "s3:GetBucketObjectLockConfiguration",
        lambda: store.call("get_object_lock_configuration"),
        of,
        absent="ObjectLockConfigurationNotFoundError",
    )


def lifecycle(store: S3Store) -> StoreCheck:
    name = "lifecycle"

    def of(answer: Any) -> StoreCheck:
        rules = [rule for rule in answer.get("Rules", ()) if _reaches(rule, store.prefix)]
        faults = [fault for rule in rules for fault in _harms(rule)]
        if faults:
            return judged(
                name, faults, "", f"{OWN_PREFIX}, or remove it: only expire and vacuum know what is needed"
            )
        costs = [cost for rule in rules for cost in _costs(rule)]
        aborts = any("AbortIncompleteMultipartUpload" in rule for rule in rules)
        todo = (
            ""
            if aborts
            else "add a rule with AbortIncompleteMultipartUpload: parts of interrupted uploads take space"
        )
        message = f"{len(rules)} rules reach this place, none deletes or archives objects there"
        if costs:
            return StoreCheck(
                name=name, verdict=CheckVerdict.NOTE, what=f"{message}; {'; '.join(costs)}", todo=todo
            )
        return StoreCheck(
            name=name, verdict=CheckVerdict.GOOD if aborts else CheckVerdict.NOTE, what=message, todo=todo
        )

    return _asked(
        name,
        "s3:GetLifecycleConfiguration",
        lambda: store.call("get_bucket_lifecycle_configuration"),
        of,
        absent="NoSuchLifecycleConfiguration",
    )


def _reaches(rule: Mapping[str, Any], place: str) -> bool:
    """Return whether a rule may affect an object below `place`.

    Rules with tags cannot, because lakelog's objects have no tags.
    """
    rule_filter = rule.get("Filter") or {}
    rule_filter = rule_filter.get("And") or rule_filter
    prefix = str(rule_filter.get("Prefix", rule.get("Prefix", "")))
    is_of_tags = bool(rule_filter.get("Tag") or rule_filter.get("Tags"))
    return (
        rule.get("Status") == "Enabled"
        and not is_of_tags
        and (prefix.startswith(place) or place.startswith(prefix))
    )


def _harms(rule: Mapping[str, Any]) -> Iterator[str]:
    name = f"the rule {rule.get('ID', 'without a name')!r}"
    expiration = rule.get("Expiration", {})
    if expiration.get("Days") or expiration.get("Date"):
        when = (
            f"after {expiration['Days']} days"
            if expiration.get("Days")
            else f"from {expiration['Date']:%Y-%m-%d} on"
        )
        yield f"{name} deletes commits and data {when}"
    for transition in rule.get("Transitions", ()):
        if transition.get("StorageClass") in SLOW_CLASSES:
            yield f"{name} moves commits and data to {transition['StorageClass']}, where they cannot be read at once"


def _costs(rule: Mapping[str, Any]) -> Iterator[str]:
    for transition in rule.get("Transitions", ()):
        name, to = rule.get("ID", "without a name"), transition.get("StorageClass")
        yield f"the rule {name!r} moves objects to {to}, where reads cost more"


def parts(store: S3Store, key: str) -> list[StoreCheck]:
    """Upload in parts of the least size, and of the size of Python's data files; then abort an upload."""
    checks = []
    for name, sizes in (
        ("multipart: parts of 5 MiB", (PART_SIZE_MIN_BYTES, PART_SIZE_MIN_BYTES, 1)),
        ("multipart: parts of 32 MiB", (PART_SIZE_BYTES, 1)),
    ):
        todo = "let the server, and gateways before it, take uploads in parts of this size"
        try:
            upload = store.call("create_multipart_upload", key)["UploadId"]
            try:
                tags = [
                    store.call("upload_part", key, UploadId=upload, PartNumber=number, Body=b"\0" * size)[
                        "ETag"
                    ]
                    for number, size in enumerate(sizes, 1)
                ]
                part_entries = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(tags, 1)]
                store.call(
                    "complete_multipart_upload", key, UploadId=upload, MultipartUpload={"Parts": part_entries}
                )
            except BaseException:
                store.call("abort_multipart_upload", key, UploadId=upload)
                raise
            size = int(store.call("head_object", key)["ContentLength"])
        except Exception as error:
            checks.append(StoreCheck(name=name, verdict=CheckVerdict.BAD, what=_answer(error), todo=todo))
            continue
        faults = [] if size == sum(sizes) else [f"the object has {size} bytes in place of {sum(sizes)}"]
        checks.append(judged(name, faults, "uploaded", todo))
    return [*checks, _aborted(store, key)]


def _aborted(store: S3Store, key: str) -> StoreCheck:
    name = "multipart: abort"
    try:
        upload = store.call("create_multipart_upload", key)["UploadId"]
        store.call("upload_part", key, UploadId=upload, PartNumber=1, Body=b"part")
        store.call("abort_multipart_upload", key, UploadId=upload)
    except Exception as error:
        return StoreCheck(
            name=name,
            verdict=CheckVerdict.WARNING,
            what=f"{_answer(error)}: interrupted uploads stay, and take space",
            todo="grant s3:AbortMultipartUpload there, and add a lifecycle rule that aborts uploads",
        )
    return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what="aborted")


def remove_versions(store: S3Store, folder: str) -> None:
    """Remove every version below `folder`. Raises the client library's errors."""
    prefix = f"{store.prefix}{folder}/"
    while True:
        page = store.call("list_object_versions", Prefix=prefix)
        names = [
            {"Key": version["Key"], "VersionId": version["VersionId"]}
            for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        ]
        if not names:
            break
        errors = store.call("delete_objects", Delete={"Objects": names, "Quiet": True}).get("Errors")
        if errors:
            raise OSError(f"{len(errors)} versions: {errors[0].get('Code')}")


def abort_uploads(store: S3Store, folder: str) -> None:
    """Abort the uploads below `folder` that were not completed. Raises the client library's errors."""
    prefix = f"{store.prefix}{folder}/"
    for upload in store.call("list_multipart_uploads", Prefix=prefix).get("Uploads", ()):
        store.call("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])


def _asked(
    name: str, action: str, ask: Callable[[], Any], of: Callable[[Any], StoreCheck], absent: str | None = None
) -> StoreCheck:
    try:
        answer = ask()
    except Exception as error:
        if absent is not None and error_code(error) == absent:
            return of({})
        if isinstance(error, LakelogError):
            raise
        if http_status(error) in (401, 403):
            return unknown(
                name,
                f"these credentials may not read it ({error_code(error) or 403})",
                f"grant {action}, or look yourself",
            )
        return unknown(
            name, f"the server does not say: {_answer(error)}", "look it up where the server is set up"
        )
    return of(answer)


def _answer(error: Exception) -> str:
    """Return the server's answer in short, without its text, which could contain credentials."""
    status = http_status(error)
    if status is None:
        return f"no answer ({type(error).__name__})"
    return f"it answered {status} ({error_code(error) or 'without a code'})"
