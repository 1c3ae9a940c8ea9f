"""Where a log keeps what, relative to its root. See README.md; names never come from users."""

VERSION_DIGITS = 20


def number(value: int) -> str:
    """Return a version as it stands in keys: fixed width, so that the order of keys is the order of versions."""
    assert 0 <= value < 10**VERSION_DIGITS, value
    return f"{value:020d}"


class Keys:
    """The keys of one log. `prefix` is the log's root in the store, "" for the store's own."""

    def __init__(self, prefix: str) -> None:
        assert not prefix.startswith("/") and not prefix.endswith("/"), prefix
        self.folder = prefix
        self.log = f"{prefix}/_log" if prefix else "_log"
        self.latest = f"{self.log}/latest.json"
        self.snapshots = f"{self.log}/snapshots/"
        self.manifests = f"{self.log}/manifests/"
        self.lost = f"{self.log}/_lost/"
        self._head = f"{self.log}/"

    def commit(self, version: int) -> str:
        return f"{self._head}{version:020d}.json"

    def base(self, base_number: int) -> str:
        return f"{self.log}/bases/{number(base_number)}.json"

    def snapshot(self, version: int, commit_hash: str) -> str:
        return f"{self.snapshots}{number(version)}-{commit_hash[:16]}.json"

    def snapshot_version(self, key: str) -> int | None:
        """Return the version of a snapshot's key, None for foreign objects."""
        digits = key.removeprefix(self.snapshots)[:VERSION_DIGITS]
        return int(digits) if digits.isdecimal() and len(digits) == VERSION_DIGITS else None

    def manifest(self, name: str) -> str:
        return f"{self.manifests}{name}"

    def sidecar(self, name: str) -> str:
        return f"{self.log}/sidecars/{name}"


def blob_version(name: str) -> int:
    """Return the version that a manifest's name starts with."""
    digits = name[:VERSION_DIGITS]
    assert digits.isdecimal() and len(digits) == VERSION_DIGITS and name[VERSION_DIGITS] == "-", name
    return int(digits)
