"""What an archive holds, and what it does not."""

import io
import json
import threading
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction

from apps.accounts.models import Invitation, User
from apps.alerts.models import WebhookEndpoint
from apps.conversations.models import Feedback, Turn
from apps.governance.export.archive import Archive, Progress, write_archive
from apps.governance.export.snapshot import snapshot
from apps.judging.models import JudgeSettings, PersonalData
from apps.keys.models import ApiKey
from apps.learning.models import Sample, SampleState
from apps.memory import services as memory
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import NASTY, Rows, fill

MAIL = "mia.keller@example.com"


def written(rows: Rows, folder: Path) -> tuple[Archive, dict[str, list[dict[str, Any]]]]:
    """Return an archive of a tenant, and the rows of each of its files."""
    place = folder / "out.zip"
    place.unlink(missing_ok=True)
    with tenant_scope(rows.tenant.pk):
        archive = write_archive(place, tenant=rows.tenant)
    return archive, read(place)


def read(place: Path | io.BytesIO) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each file of an archive."""
    with zipfile.ZipFile(place) as found:
        assert found.testzip() is None
        return {
            name: [json.loads(line) for line in found.read(name).split(b"\n")[:-1]]
            for name in found.namelist()
            if name.endswith(".jsonl")
        }


def test_an_archive_holds_what_a_tenant_has(acme: Rows, tmp_path: Path) -> None:
    archive, found = written(acme, tmp_path)
    assert archive.rows == {
        "policies.jsonl": 1,
        "configurations.jsonl": 1,
        "versions.jsonl": 2,
        "runs.jsonl": 1,
        "sessions.jsonl": 1,
        "turns.jsonl": 2,
        "judgements.jsonl": 2,
        "samples.jsonl": 2,
        "feedback.jsonl": 1,
        "memory.jsonl": 1,
        "audit.jsonl": 1,
        "trl/prompt-completion.jsonl": 2,
        "trl/prompt-completion-tools.jsonl": 0,
        "trl/unpaired-preference.jsonl": 2,
        "trl/preference.jsonl": 1,
    }
    assert {name: len(lines) for name, lines in found.items()} == archive.rows
    first, second = found["turns.jsonl"]
    assert second["parent_id"] == first["id"]
    assert first["next_turn_id"] == second["id"] == str(acme.turn.pk)
    assert second["messages"][-1] == {"role": "user", "content": f"question 1 {NASTY}"}
    assert (second["prompt_ids"], second["output_ids"]) == ([1, 2, 3], [10, 11, 12, 13])
    assert second["output_logprobs"] == [-0.01, -0.5, -2.0, -7.5]
    assert (second["version"], second["served_name"]) == (2, acme.version.served_name)
    assert second["training"] | {"means": ""} == {
        "state": "consumed",
        "reason": "",
        "reward": -1.0,
        "rollout_outcome": None,
        "weight": 1.0,
        "staleness": 1,
        "run_id": str(acme.run.pk),
        "hints": [f"be brief {NASTY}"],
        "means": "",
    }
    assert found["samples.jsonl"][0]["made_version_id"] == str(acme.version.pk)
    assert found["judgements.jsonl"][0]["votes"][0]["text"] == f"worse {NASTY}"
    assert found["judgements.jsonl"][0]["hints"][0]["text"] == f"be brief {NASTY}"
    assert found["feedback.jsonl"][0]["correction"] == NASTY
    assert found["memory.jsonl"][0]["evidence"] == [{"turn_id": str(acme.turn.pk), "words": NASTY}]
    assert found["audit.jsonl"][0]["action"] == "test.fill"


def test_why_a_turn_was_not_trained_on_is_told(acme: Rows, tmp_path: Path) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(
            state=SampleState.INELIGIBLE, reason="greedy", run=None, consumed_at=None
        )
        Turn.objects.filter(pk=acme.turn.pk).update(output_logprobs=[-0.5, float("nan"), 0.0, 0.0])
    archive, found = written(acme, tmp_path)
    told = found["turns.jsonl"][1]
    assert (told["training"]["state"], told["training"]["reason"]) == ("ineligible", "greedy")
    assert told["training"]["means"].startswith("Sampled at temperature 0")
    assert told["output_logprobs"] == [-0.5, None, 0.0, 0.0]
    # what may teach nobody is no training row
    assert archive.rows["trl/prompt-completion.jsonl"] == 1
    assert archive.rows["trl/preference.jsonl"] == 0


def test_rows_are_in_the_conversational_layouts_that_trl_reads(acme: Rows, tmp_path: Path) -> None:
    with tenant_scope(acme.tenant.pk):
        first = Turn.objects.get(next_turn=acme.turn)
        first.tools = [{"type": "function", "function": {"name": "lamp", "parameters": {"type": "object"}}}]
        first.reply = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "lamp", "arguments": '{"on": true}'}}
            ],
        }
        first.save(update_fields=["tools", "reply"])
        acme.turn.messages = [
            {"role": "user", "content": [{"type": "text", "text": "Good "}, {"type": "text", "text": "day"}]}
        ]
        acme.turn.memory = {"text": "Be brief.", "entries": [], "tokens": 3, "reminder": ""}
        acme.turn.save(update_fields=["messages", "memory"])
    _, found = written(acme, tmp_path)
    (row,) = found["trl/prompt-completion.jsonl"]
    answer = {"role": "assistant", "content": f"answer 1 {NASTY}"}
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Good day"}]
    assert (row["prompt"], row["completion"], row["reward"]) == (asked, [answer], -1.0)
    assert (row["hint"], row["version"], row["source"]) == (f"be brief {NASTY}", 2, "live")
    (with_tools,) = found["trl/prompt-completion-tools.jsonl"]
    assert with_tools["tools"] == first.tools
    assert with_tools["completion"] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"type": "function", "function": {"name": "lamp", "arguments": {"on": True}}},
            ],
        }
    ]
    (labelled,) = found["trl/unpaired-preference.jsonl"]
    assert set(labelled) == {"prompt", "completion", "label", "turn"}
    assert labelled["label"] is False
    (pair,) = found["trl/preference.jsonl"]
    assert pair["chosen"] == [{"role": "assistant", "content": NASTY}]
    assert (pair["prompt"], pair["rejected"]) == (asked, [answer])


@pytest.mark.parametrize(
    "arguments", ['{"a": NaN}', '{"a": 1e999}', f'{{"a": {"[" * 5000}{"]" * 5000}}}', "x"]
)
def test_arguments_that_are_no_json_are_a_text(acme: Rows, tmp_path: Path, arguments: str) -> None:
    """Models and the code of agents write them; an archive is written all the same."""
    function = {"name": "lamp", "arguments": arguments}
    with tenant_scope(acme.tenant.pk):
        acme.turn.messages = [
            {"role": "user", "content": "on"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "done"},
        ]
        acme.turn.save(update_fields=["messages"])
    _, found = written(acme, tmp_path)
    (row,) = found["trl/prompt-completion-tools.jsonl"]
    said = next(message for message in row["prompt"] if message["role"] == "assistant")
    assert said["tool_calls"] == [{"type": "function", "function": function}]


def test_no_secret_and_nothing_of_another_tenant_is_in_it(acme: Rows, tmp_path: Path) -> None:
    other = fill("globex")
    with system_scope("secrets"):
        User.objects.filter(pk=acme.user.pk).update(password="pbkdf2$a-password-hash")
        WebhookEndpoint.objects.filter(tenant=acme.tenant).update(secret="a-sealed-secret")
        key, invitation = ApiKey.objects.get(tenant=acme.tenant), Invitation.objects.get(tenant=acme.tenant)
    _, found = written(acme, tmp_path)
    text = json.dumps(found, ensure_ascii=False)
    secrets = [bytes(key.secret_sha256), bytes(invitation.token_sha256)]
    for word in (
        *(secret.hex() for secret in secrets),
        *(repr(secret) for secret in secrets),
        "a-password-hash",
        "a-sealed-secret",
        str(other.tenant.pk),
        str(other.turn.pk),
        "globex",
    ):
        assert word not in text, word
    assert acme.turn.body_sha256 not in text
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert all(".." not in name and not name.startswith("/") for name in archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["tenant"]["slug"] == "acme"
    assert manifest["personal_data"] == {"*": "off", str(acme.policy.pk): "off"}


@pytest.mark.parametrize("mode", [PersonalData.REDACT, PersonalData.DROP])
def test_personal_data_leaves_only_where_the_policy_lets_it(
    acme: Rows, tmp_path: Path, mode: PersonalData
) -> None:
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(
            messages=[{"role": "user", "content": f"Write to {MAIL}"}],
            reply={"role": "assistant", "content": "Yes."},
        )
        Feedback.objects.filter(turn=acme.turn).update(correction=f"Ask {MAIL}")
    _, plain = written(acme, tmp_path)
    assert MAIL in json.dumps(plain)
    assert "redacted" not in plain["turns.jsonl"][1]
    with tenant_scope(acme.tenant.pk):
        JudgeSettings.objects.update_or_create(
            policy=acme.policy, defaults={"tenant_id": acme.tenant.pk, "personal_data": mode}
        )
    _, found = written(acme, tmp_path)
    assert MAIL not in json.dumps(found)
    before, turn = found["turns.jsonl"]
    assert turn["messages"] == [{"role": "user", "content": "Write to [email address]"}]
    assert (turn["redacted"], turn["prompt_ids"], turn["output_ids"]) == (True, None, None)
    assert (before["redacted"], before["prompt_ids"]) == (False, [1, 2, 3])
    assert found["feedback.jsonl"][0]["correction"] == "Ask [email address]"
    taught = {row["turn"]: row for row in found["trl/prompt-completion.jsonl"]}
    if mode == PersonalData.DROP:
        assert str(acme.turn.pk) not in taught
    else:
        assert taught[str(acme.turn.pk)]["prompt"] == turn["messages"]


def test_what_a_wish_is_about_leaves_only_where_its_words_do(acme: Rows, tmp_path: Path) -> None:
    number = "415-555-0123"
    with tenant_scope(acme.tenant.pk):
        for text in (f"Call me {number}.", "Answer in French."):
            memory.add_preference(
                policy_id=acme.policy.pk, user_id=acme.user.pk, end_user=None, text=text, actor="user:x"
            )
    _, plain = written(acme, tmp_path)
    assert [row["topics"] for row in plain["memory.jsonl"][-2:]] == [[f"name:{number}"], ["language:french"]]
    with tenant_scope(acme.tenant.pk):
        JudgeSettings.objects.update_or_create(
            policy=acme.policy, defaults={"tenant_id": acme.tenant.pk, "personal_data": PersonalData.REDACT}
        )
    _, found = written(acme, tmp_path)
    assert [(row["own_words"], row["topics"]) for row in found["memory.jsonl"][-2:]] == [
        ("Call me [phone number].", []),
        ("Answer in French.", ["language:french"]),
    ]


def test_a_reply_with_personal_data_is_no_training_row(acme: Rows, tmp_path: Path) -> None:
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(reply={"role": "assistant", "content": f"It is {MAIL}"})
        JudgeSettings.objects.filter(policy=None).update(personal_data=PersonalData.REDACT)
    archive, found = written(acme, tmp_path)
    assert MAIL not in json.dumps(found)
    assert archive.rows["trl/prompt-completion.jsonl"] == 1


def test_all_rows_are_of_one_moment(acme: Rows, tmp_path: Path) -> None:
    """What is written while the archive is, by somebody else, is in none of its files."""
    begun = []

    def heard(progress: Progress) -> None:
        if not begun:
            begun.append(progress)
            other = threading.Thread(target=_say_more, args=(acme,))
            other.start()
            other.join()

    with tenant_scope(acme.tenant.pk):
        archive = write_archive(tmp_path / "one.zip", tenant=acme.tenant, heard=heard)
        assert (Turn.objects.count(), AuditEntry.objects.filter(action="test.later").count()) == (3, 1)
    assert begun[0].total == 22
    assert (archive.rows["turns.jsonl"], archive.rows["audit.jsonl"]) == (2, 1)
    assert archive.snapshot_at == begun[0].snapshot_at


def _say_more(rows: Rows) -> None:
    with tenant_scope(rows.tenant.pk):
        turn = Turn.objects.get(pk=rows.turn.pk)
        turn.pk, turn.parent_id = None, rows.turn.pk
        turn.save(force_insert=True)
        AuditEntry.objects.create(
            tenant_id=rows.tenant.pk, actor="system:test", action="test.later", target="x"
        )
    connection.close()


def test_a_snapshot_is_read_only_and_a_transaction_of_its_own(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        with pytest.raises(DatabaseError, match="read-only"), snapshot():
            Turn.objects.all().delete()
        with transaction.atomic(), pytest.raises(RuntimeError, match="of its own"), snapshot():
            pass
        assert Turn.objects.count() == 2


def test_memory_stays_bounded(acme: Rows, tmp_path: Path) -> None:
    """Forty times as many turns of 20 kB make the archive larger,
    and the writer no heavier than some rows."""
    place = tmp_path / "big.zip"

    def peak(turns: int) -> int:
        place.unlink(missing_ok=True)
        with tenant_scope(acme.tenant.pk):
            Turn.objects.bulk_create(
                Turn(
                    tenant=acme.tenant,
                    session=acme.session,
                    policy=acme.policy,
                    state="failed",
                    messages=[{"role": "user", "content": f"{number} " + "word " * 4000}],
                    request_hash="0" * 64,
                    body_sha256="0" * 64,
                )
                for number in range(turns)
            )
            tracemalloc.start()
            write_archive(place, tenant=acme.tenant)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most

    few, many = peak(60), peak(2340)
    assert many < 1.5 * few, (few, many)


def test_a_writing_that_ends_early_leaves_no_file(acme: Rows, tmp_path: Path) -> None:
    def heard(progress: Progress) -> None:
        if progress.part == "samples.jsonl":
            raise OSError("no space left")

    with tenant_scope(acme.tenant.pk), pytest.raises(OSError, match="no space left"):
        write_archive(tmp_path / "out.zip", tenant=acme.tenant, heard=heard)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_made_by_command(
    acme: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "acme.zip"
    call_command("export_tenant", "acme", str(place), "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["rows"]["turns.jsonl"] == 2
    assert told["bytes"] == place.stat().st_size
    assert len(read(place)["turns.jsonl"]) == 2
    with pytest.raises(CommandError, match="is there already"):
        call_command("export_tenant", "acme", str(place))
    with pytest.raises(CommandError, match="no tenant nobody"):
        call_command("export_tenant", "nobody", str(tmp_path / "x.zip"))
    call_command("export_tenant", "acme", str(tmp_path / "again.zip"))
    said = capsys.readouterr()
    assert "2 turns.jsonl" in said.out
    assert "policies.jsonl: 0 of 23 rows" in said.err
