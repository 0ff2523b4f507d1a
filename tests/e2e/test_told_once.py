"""Told once, for real: the complaint is in the next prompt within seconds,
and is gone when its session is."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.e2e.platform_process import PlatformProcess

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]

COMPLAINT = "That was much too long. Please answer in one short sentence."


def test_a_complaint_is_in_the_next_prompt_and_leaves_with_its_session(platform: PlatformProcess) -> None:
    key, base = platform.given["api_key"], platform.given["api_base"]
    platform.add_policy("told")  # its own: what is said here is no sample of another test's step
    person = f"e2e-{uuid.uuid4().hex[:8]}"
    with httpx.Client(trust_env=False, timeout=120, headers={"Authorization": f"Bearer {key}"}) as http:

        def ask(*said: str, session: str) -> str:
            body = {
                "model": "told",
                "user": person,
                "session_id": session,
                "max_tokens": 16,
                "messages": [
                    {"role": "assistant" if number % 2 else "user", "content": text}
                    for number, text in enumerate(said)
                ],
            }
            answer = http.post(f"{base}/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            content: str = answer.json()["choices"][0]["message"]["content"]
            return content

        def listed() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = http.get(
                f"{base}/memory", params={"model": "told", "user": person}
            ).json()["data"]
            return found

        def told(session: str) -> Any:
            rows = platform.rows(
                "SELECT turn.memory FROM conversations_turn turn"
                " JOIN conversations_session session ON session.id = turn.session_id"
                " WHERE session.external_id = %s ORDER BY turn.created_at DESC LIMIT 1",
                session,
            )
            return rows[0]["memory"]

        first = f"{person}-1"
        reply = ask("What is rain?", session=first)
        ask("What is rain?", reply, COMPLAINT, session=first)
        platform.until(lambda: bool(listed()), within_s=30, what="the complaint to be remembered")

        ask("What is snow?", session=f"{person}-2")
        memory = told(f"{person}-2")
        assert [entry["id"] for entry in memory["entries"]] == [listed()[0]["id"]]
        assert "one short sentence" in memory["text"]

        platform.rows(
            "WITH gone AS (SELECT turn.id FROM conversations_turn turn JOIN conversations_session session"
            " ON session.id = turn.session_id WHERE session.external_id = %s)"
            " DELETE FROM memory_evidence WHERE turn_id IN (SELECT id FROM gone)",
            first,
        )
        ask("What is hail?", session=f"{person}-3")
        assert told(f"{person}-3") is None
