"""Which variables a platform gets that a command starts."""

import json
from pathlib import Path

import pytest

from apps.evaluation.stack import _given
from config import env


def test_what_was_adopted_from_a_platform_that_is_gone_is_not_handed_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TEST_ADOPTED_URL", "ATTUNE_ADOPTED"):
        monkeypatch.setenv(name, "")  # put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_GIVEN_URL", "mine")
    (tmp_path / "environment.json").write_text(
        json.dumps({"TEST_GIVEN_URL": "theirs", "TEST_ADOPTED_URL": "theirs"})
    )
    for _ in range(2):  # settings are read again in a child: then there is nothing left to adopt
        env.adopt(tmp_path / "environment.json")
        given = _given()
        assert given["TEST_GIVEN_URL"] == "mine"
        assert "TEST_ADOPTED_URL" not in given
        assert "ATTUNE_ADOPTED" not in given
    env.adopt(tmp_path / "nothing.json")
