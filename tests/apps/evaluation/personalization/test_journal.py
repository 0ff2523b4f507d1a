"""Lines that outlive their process, and are only believed where they were found under the same terms."""

from dataclasses import replace
from pathlib import Path

import pytest

from apps.evaluation.personalization.journal import UNRECORDED, Journal, past_of, read
from apps.evaluation.personalization.plan import RunKey
from kernel.errors import Conflict
from tests.apps.evaluation.personalization.fake_world import QUICK, USER, plan_of

PLAN = plan_of("opd")
KEY = RunKey(1, USER.name, "opd")


def _write(path: Path, *events: tuple[str, dict[str, object]]) -> None:
    with Journal(path, code="abc", machine="2 cores") as journal:
        for event, found in events:
            journal.write(event, KEY, PLAN.fingerprint(KEY), **found)


def test_half_a_line_is_dropped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    _write(path, ("begun", {"tenant": "t"}), ("session-begun", {"session": 1}))
    with path.open("ab") as file:
        file.write(b'{"event": "session", "session": 1, "pas')
    assert [line["event"] for line in read(path)] == ["begun", "session-begun"]
    _write(path, ("session", {"session": 1, "passed": True}))
    assert path.read_bytes().count(b"\n") == 3
    past = past_of(read(path), PLAN)[KEY]
    assert (past.tenant, past.sessions[1]["passed"], past.interrupted, past.ended) == ("t", True, 0, False)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores"),
        pytest.raises(Conflict, match=r"another benchmark writes .*state\.jsonl"),
        Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores"),
    ):
        pass
    with Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores"):
        pass


def test_results_under_other_terms_are_refused(tmp_path: Path) -> None:
    _write(tmp_path / "state.jsonl", ("begun", {"tenant": "t"}))
    other = plan_of("opd", terms=replace(QUICK, cap=10))
    with pytest.raises(Conflict, match=f"results of opd/{USER.name}/1 under other terms, texts or rules"):
        past_of(read(tmp_path / "state.jsonl"), other)


def test_more_methods_and_seeds_may_be_added_to_a_benchmark(tmp_path: Path) -> None:
    _write(tmp_path / "state.jsonl", ("begun", {"tenant": "t"}), ("ended", {}))
    wider = plan_of("frozen", "opd", seeds=(2, 1))
    past = past_of(read(tmp_path / "state.jsonl"), wider)
    assert [str(key) for key, one in past.items() if one.ended] == [f"opd/{USER.name}/1"]


@pytest.mark.parametrize(
    "change",
    [{"base_model": "another"}, {"terms": replace(QUICK, turns=2)}, {"terms": replace(QUICK, mode="once")}],
)
def test_a_fingerprint_changes_with_what_decides(change: dict[str, object]) -> None:
    assert replace(PLAN, **change).fingerprint(KEY) != PLAN.fingerprint(KEY)  # type: ignore[arg-type]
    assert replace(PLAN, seeds=(1, 2)).fingerprint(KEY) == PLAN.fingerprint(KEY)


def test_a_journal_that_is_closed_takes_no_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state.jsonl", code="abc", machine="2 cores")
    with pytest.raises(RuntimeError, match="not open"):
        journal.write("begun", KEY, "f")


def test_there_is_nothing_to_read_where_nothing_was_written(tmp_path: Path) -> None:
    assert read(tmp_path / "no.jsonl") == []
    assert list(tmp_path.iterdir()) == []


def test_every_machine_that_a_run_was_on_is_known(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    lines = [("begun", {"tenant": "t"}), ("session", {"session": 1, "passed": True})]
    for machine, (event, found) in zip(("2 cores", "1 of 2 cores"), lines, strict=True):
        with Journal(path, code="abc", machine=machine) as journal:
            if event == "session":
                journal.write("session-begun", KEY, PLAN.fingerprint(KEY), session=1)
            journal.write(event, KEY, PLAN.fingerprint(KEY), **found)
    assert past_of(read(path), PLAN)[KEY].machines == {"2 cores", "1 of 2 cores"}
    older = [{name: value for name, value in line.items() if name != "machine"} for line in read(path)]
    assert past_of(older, PLAN)[KEY].machines == {UNRECORDED}
