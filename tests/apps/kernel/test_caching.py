"""The web goes on while Redis is away, and counts alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts import words
from embedded.home import free_port
from kernel.caching import SharedOrOwn
from kernel.rest.throttle import CallerThrottle
from tests.tenants import add_somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def away(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let nobody answer where Redis should be."""
    monkeypatch.setattr(SharedOrOwn, "alone_until", 0.0)
    default = settings.CACHES["default"]
    settings.CACHES = {"default": {**default, "LOCATION": f"redis://127.0.0.1:{free_port()}/0"}}
    yield
    cache.clear()


@pytest.mark.usefixtures("away")
def test_what_is_kept_meanwhile_is_kept_here() -> None:
    cache.set("a", [1, 2], 60)
    assert cache.get("a") == [1, 2]
    assert (cache.add("a", 3), cache.add("n", 1)) == (False, True)
    assert (cache.incr("n", 2), cache.has_key("n")) == (3, True)
    with pytest.raises(ValueError, match="missing"):
        cache.incr("missing")
    assert (cache.touch("n", 60), cache.delete("n"), cache.get("n", "gone")) == (True, True, "gone")
    cache.clear()
    assert cache.get("a") is None


@pytest.mark.usefixtures("valkey")
def test_redis_is_asked_again_once_it_is_back(
    away: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    del away
    cache.set("a", "alone", 60)
    assert SharedOrOwn.alone_until > 0
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": settings.REDIS_URL}}
    assert cache.get("a") == "alone"
    monkeypatch.setattr(SharedOrOwn, "alone_until", 0.0)
    assert cache.get("a") is None
    cache.set("a", "shared", 60)
    assert cache.get("a") == "shared"


@pytest.mark.usefixtures("away")
def test_api_answers_and_goes_on_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallerThrottle, "THROTTLE_RATES", {"api": "2/min"})
    key = {"Authorization": f"Bearer {add_somebody(scopes=('read',)).secret}"}
    answers = [Client().get("/api/tenant", headers=key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]


@pytest.mark.usefixtures("away")
def test_signing_in_is_answered_and_its_tries_are_counted(settings: Any) -> None:
    asked = {"login": "nobody@example.org", "password": "not it, whatever it is"}
    seen = [Client().post("/accounts/login/", asked) for _ in range(settings.LOGIN_TRIES + 1)]
    assert {answer.status_code for answer in seen} == {200}
    told = [words.ACCOUNT["too_many_login_attempts"] in answer.content.decode() for answer in seen]
    assert told == [False] * settings.LOGIN_TRIES + [True]
