"""Credentials for tables are given again for half of their life, and show no secret."""

from __future__ import annotations

import threading

import pytest
from tests.patience import PATIENCE_S, barrier

from lakelog.log.errors import StorageError, Unsupported
from lakelog.rest.vending import AccessRequest, RoleUnavailable, TableCredentials
from lakelog.rest.vending import credentials as module
from lakelog.rest.vending.credentials import CredentialCache

LIFE_S = 1000


class Clocks:
    """The two clocks of a host, in seconds. Tests set them."""

    def __init__(self) -> None:
        self.steady_s, self.host_s = 0.0, 1_000_000.0


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(module, "steady_clock_us", lambda: round(clocks.steady_s * 1_000_000))
    monkeypatch.setattr(module, "host_clock_us", lambda: round(clocks.host_s * 1_000_000))
    return clocks


class Service:
    """Gives credentials, and counts them."""

    def __init__(self, clocks: Clocks, life_s: float = LIFE_S) -> None:
        self.clocks, self.life_s, self.count = clocks, life_s, 0
        self.failure: Exception | None = None

    def __call__(self) -> TableCredentials:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        return TableCredentials(
            f"id-{self.count}", "hidden-1", "hidden-2", round((self.clocks.host_s + self.life_s) * 1000)
        )


def test_credentials_are_given_again_for_half_of_their_life(clocks: Clocks) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    for passed_s, expected in ((0, "id-1"), (499, "id-1"), (501, "id-2"), (900, "id-2"), (1002, "id-3")):
        clocks.steady_s = passed_s
        assert cache.get("t", service).access_key_id == expected
    assert cache.get("other", service).access_key_id == "id-4"


def test_a_service_that_gives_less_time_is_asked_sooner(clocks: Clocks) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks, life_s=100)
    for passed_s, expected in ((0, "id-1"), (49, "id-1"), (51, "id-2")):
        clocks.steady_s = passed_s
        assert cache.get("t", service).access_key_id == expected


@pytest.mark.parametrize(("moved_s", "count"), [(-5000, 1), (5000, 3)])
def test_a_host_with_a_wrong_clock_keeps_nothing_for_longer(clocks: Clocks, moved_s: int, count: int) -> None:
    """Behind, the steady clock decides. Ahead, the credentials seem to be over, and each client gets new ones."""
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    true_life_s = LIFE_S - moved_s  # as the host sees the end that the service names
    service.life_s = true_life_s
    for passed_s in (0, 100, 499):
        clocks.steady_s = passed_s
        cache.get("t", service)
    assert service.count == count
    clocks.steady_s = 501
    cache.get("t", service)
    assert service.count == count + 1


def test_a_failure_is_not_kept_and_old_credentials_are_not_given(clocks: Clocks) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    cache.get("t", service)
    clocks.steady_s, service.failure = 501, StorageError("refused", location="")
    for _ in range(2):
        with pytest.raises(StorageError, match="refused"):
            cache.get("t", service)
    service.failure = None
    assert cache.get("t", service).access_key_id == "id-4"


def test_a_service_without_an_answer_is_left_alone_for_a_while(clocks: Clocks) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    known = cache.get("known", service)
    service.failure = RoleUnavailable("sts gave no answer")
    with pytest.raises(StorageError, match="sts gave no answer"):
        cache.get("t", service)
    service.failure = None
    for key in ("t", "u"):
        with pytest.raises(StorageError, match="had no answer"):
            cache.get(key, service)
    assert service.count == 2 and cache.get("known", service) is known
    clocks.steady_s = module.PAUSE_S
    assert cache.get("t", service).access_key_id == "id-3"


def test_after_a_pause_a_single_thread_tries_the_service_and_no_other_waits(clocks: Clocks) -> None:
    """However long the service gives no answer, it holds a single one of the server's threads."""
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    service.failure = RoleUnavailable("sts gave no answer")
    with pytest.raises(StorageError, match="sts gave no answer"):
        cache.get("t", service)
    clocks.steady_s, service.failure = module.PAUSE_S, None
    is_asked, may_answer = threading.Event(), threading.Event()
    answers: list[str] = []

    def slow() -> TableCredentials:
        is_asked.set()
        assert may_answer.wait(PATIENCE_S)
        return service()

    trial = threading.Thread(target=lambda: answers.append(cache.get("t", slow).access_key_id))
    trial.start()
    assert is_asked.wait(PATIENCE_S)
    for key in ("t", "u"):  # of the same table, and of another
        with pytest.raises(StorageError, match="Try again in 5 s"):
            cache.get(key, service)
    assert service.count == 1
    may_answer.set()
    trial.join()
    assert answers == ["id-2"] and cache.get("u", service).access_key_id == "id-3"


@pytest.mark.parametrize("refusal", [StorageError("refused", location=""), Unsupported("refused")])
def test_a_refusal_after_a_pause_ends_it(clocks: Clocks, refusal: Exception) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    service.failure = RoleUnavailable("sts gave no answer")
    with pytest.raises(StorageError):
        cache.get("t", service)
    clocks.steady_s, service.failure = module.PAUSE_S, refusal
    with pytest.raises(type(refusal), match="refused"):
        cache.get("t", service)
    assert not cache._service._has_failed


def test_a_trial_that_fails_begins_another_pause(clocks: Clocks) -> None:
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    service.failure = RoleUnavailable("sts gave no answer")
    for number in range(3):
        clocks.steady_s = number * module.PAUSE_S
        with pytest.raises(StorageError, match="sts gave no answer"):
            cache.get("t", service)
        with pytest.raises(StorageError, match="had no answer"):
            cache.get("u", service)
    assert service.count == 3


def test_a_slow_service_holds_a_few_threads_alone(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0.01)
    cache, service, may_answer = CredentialCache(LIFE_S), Service(clocks), threading.Event()
    all_asked = barrier(module.REQUESTS_MAX + 1)

    def slow() -> TableCredentials:
        all_asked.wait(PATIENCE_S)
        assert may_answer.wait(PATIENCE_S)
        return service()

    threads = [
        threading.Thread(target=cache.get, args=(f"t{number}", slow)) for number in range(module.REQUESTS_MAX)
    ]
    for thread in threads:
        thread.start()
    all_asked.wait(PATIENCE_S)
    for key, words in (("t0", "another request for them"), ("u", "4 requests for some")):
        with pytest.raises(StorageError, match=words):
            cache.get(key, service)
    may_answer.set()
    for thread in threads:
        thread.join()
    assert cache.get("u", service).access_key_id == f"id-{module.REQUESTS_MAX + 1}"


def test_threads_that_want_the_same_credentials_ask_once(clocks: Clocks) -> None:
    cache, service, start = CredentialCache(LIFE_S), Service(clocks), barrier(4)
    keys: list[str] = []

    def get() -> None:
        start.wait(PATIENCE_S)
        keys.append(cache.get("t", service).access_key_id)

    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys == ["id-1"] * 4 and service.count == 1


def test_the_oldest_uses_make_room(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES_MAX", 2)
    cache, service = CredentialCache(LIFE_S), Service(clocks)
    for key in ("a", "b", "a", "c", "a", "b"):
        cache.get(key, service)
    assert service.count == 4  # b made room for c


def test_the_text_of_credentials_shows_no_secret() -> None:
    credentials = TableCredentials("ASIA1", "hidden-1", "hidden-2", 5)
    assert repr(credentials) == str(credentials) == "TableCredentials(expires_at_ms=5)"
    assert credentials.config() == {
        "s3.access-key-id": "ASIA1",
        "s3.secret-access-key": "hidden-1",
        "s3.session-token": "hidden-2",
        "s3.session-token-expires-at-ms": "5",
    }


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("vended-credentials", True),
        ("vended-credentials,remote-signing", True),
        ("remote-signing, Vended-Credentials", True),
        ("something-new", False),
        ("vended-credentials-2", False),
    ],
)
def test_a_header_says_if_a_client_takes_credentials(header: str, expected: bool) -> None:
    assert AccessRequest(header=header).wants_credentials() is expected
