"""The drift of a policy as a line, as a table, as JSON and as a plot."""

import datetime as dt
import io
import json
import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.adapters.models import Policy
from apps.console.spark import spark
from apps.learning.models import Sample, SampleState
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows


def test_a_line_has_a_point_for_each_reading_and_its_bound_where_it_is_in_sight() -> None:
    drawn = str(spark([0.0, 1.0, 0.5], 0.75))
    assert 'points="3.0,33.0 90.0,3.0 177.0,18.0"' in drawn
    assert 'x1="0" x2="180" y1="10.5" y2="10.5"' in drawn
    assert 'aria-label="3 readings, the last 0.5"' in drawn
    assert "at-spark-bound" not in str(spark([0.01, 0.02], 5.0))
    assert spark([], 1.0) == ""


def test_the_command_says_what_is_past_its_bound(acme: Rows, tmp_path: Path) -> None:
    def run(**options: object) -> str:
        out = io.StringIO()
        call_command("drift", tenant="acme", policy="default", stdout=out, **options)
        return out.getvalue()

    lines = run(plot=tmp_path / "drift.png").splitlines()
    assert [line.split()[:3] for line in lines[:2]] == [
        ["!", "rollout_learner", "rollout_k3"],
        ["rollout_learner", "ess", "0.9"],
    ]
    assert lines[-1] == "Training is not paused."
    assert "No data yet: rollout_deploy, learner_deploy." in lines
    assert (tmp_path / "drift.png").read_bytes()[:4] == b"\x89PNG"
    said = json.loads(run(json=True))
    assert said["no_readings"] == ""
    assert said["measures"]["rollout_k3"]["past"] is True
    assert said["measures"]["ess"]["readings"][0]["bound"] == 0.4
    assert [row["measure"] for row in said["crossings"]] == ["rollout_k3"]
    with tenant_scope(acme.tenant.pk):
        trained = Sample.objects.filter(policy=acme.policy, state=SampleState.CONSUMED)
        names = [str(pk) for pk in trained.values_list("pk", flat=True)]
    assert str(acme.sample.pk) in names
    assert json.loads(run(weights=True)) == {
        "unreachable": 0.0,
        "ess": 1.0,
        "samples": dict.fromkeys(names, 1.0),
    }
    with pytest.raises(CommandError, match="acme has no policy other"):
        call_command("drift", tenant="acme", policy="other")


def test_before_any_reading_the_command_says_when_the_first_come(
    acme: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(**options: object) -> str:
        out = io.StringIO()
        call_command("drift", tenant="acme", policy="fresh", stdout=out, **options)
        return out.getvalue()

    thursday = dt.datetime(2026, 12, 3, 17, 30, tzinfo=dt.UTC)
    monkeypatch.setattr("apps.learning.drift.readings.timezone.now", lambda: thursday)
    with tenant_scope(acme.tenant.pk):
        Policy.objects.create(name="fresh", base_model="tiny")
    none = (
        "No readings yet. The first gauge is read when a training step ends, the other two right after it; without a "
        "step those two are read once a week, next after 2026-12-07 00:00 UTC, if people have talked to the policy."
    )
    assert run().splitlines() == [none, "Training is not paused."]
    assert json.loads(run(json=True)) == {
        "policy": "fresh",
        "paused": "",
        "measures": {},
        "crossings": [],
        "no_readings": none,
    }
    with pytest.raises(CommandError, match=re.escape(f"There is nothing to draw. {none}")):
        run(plot=tmp_path / "drift.png")
    assert not (tmp_path / "drift.png").exists()
