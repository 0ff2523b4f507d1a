"""The trainer without anybody else: files in, versions out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from trainer.artefact import MANIFEST, OPTIMIZER, WEIGHTS
from trainer.cli import Plan, evaluate, export, read_config, read_samples, train
from trainer.codec import ContractError
from trainer.contracts import SampleInput, StepConfig, StepReport
from trainer.errors import StepFailedError
from trainer.model.policy import PolicyModel

from .conftest import HINTED

ROOT = Path(__file__).resolve().parents[3]
Make = Callable[..., SampleInput]


@pytest.fixture
def plan(sample: Make, tmp_path: Path) -> Plan:
    """Three batches of two, the second of which has nothing to say."""
    samples = [sample(seed, reward=1.0 if seed % 2 else -1.0, hint_prompt_ids=(HINTED,)) for seed in range(6)]
    samples[2:4] = [sample(seed, reward=None) for seed in (2, 3)]
    # ratios need the policy that sampled, and the adapter moves away from it
    config = StepConfig(lr=2e-3, max_rollout_k3=1e9, min_ess=0.0)
    return Plan(samples=tuple(samples), config=config, out=tmp_path / "run", batch=2)


def run(model: PolicyModel, plan: Plan) -> list[StepReport]:
    reports: list[Any] = []
    train(model, plan, reports.append)
    return reports


def test_each_batch_is_a_step_from_the_one_before(model: PolicyModel, plan: Plan) -> None:
    reports = run(model, plan)
    assert [report.outcome for report in reports] == ["made", "no_op", "made"]
    assert [path.name for path in sorted(plan.out.iterdir())] == ["step-000000", "step-000002"]
    first, last = (
        json.loads((plan.out / name / MANIFEST).read_text()) for name in ("step-000000", "step-000002")
    )
    assert (last["step"], last["parent_hash"]) == (2, first["hash"])
    assert last["baseline"] == reports[-1].baseline.to_json()


@pytest.mark.parametrize("lost", [["step-000002"], ["step-000000", "step-000002"]])
def test_a_training_that_was_stopped_ends_as_one_that_was_not(
    model: PolicyModel, plan: Plan, lost: list[str]
) -> None:
    run(model, plan)
    whole = [(plan.out / "step-000002" / name).read_bytes() for name in (WEIGHTS, OPTIMIZER, MANIFEST)]
    for name in lost:
        shutil.rmtree(plan.out / name)
    (plan.out / ".step-000002.tmp-1").mkdir()  # what a killed process leaves behind
    reports = run(model, plan)
    assert len(reports) == (2 if len(lost) == 1 else 3)
    again = [(plan.out / "step-000002" / name).read_bytes() for name in (WEIGHTS, OPTIMIZER, MANIFEST)]
    assert again == whole
    assert run(model, plan) == []


def test_a_version_that_is_not_whole_is_not_gone_on_from(model: PolicyModel, plan: Plan) -> None:
    run(model, plan)
    (plan.out / "step-000002" / OPTIMIZER).write_bytes(b"")
    with pytest.raises(StepFailedError, match="step-000002"):
        run(model, plan)


def test_a_dry_run_and_an_evaluation_write_nothing(model: PolicyModel, plan: Plan, tmp_path: Path) -> None:
    dry = Plan(plan.samples, plan.config, plan.out, plan.batch, dry_run=True)
    assert [report.code for report in run(model, dry)] == ["dry_run", "no_signal", "dry_run"]
    found: list[Any] = []
    report = evaluate(model, Plan(plan.samples, plan.config, tmp_path / "x", 1), found.append)
    assert found == [report]
    assert (report.code, report.metrics["train_rollout_logprob_abs_diff"] < 1e-5) == ("dry_run", True)
    assert report.metrics["grad_norm"] > 0
    assert not plan.out.exists()


def test_an_export_is_what_peft_reads(model: PolicyModel, plan: Plan, tmp_path: Path) -> None:
    run(model, plan)
    version = plan.out / "step-000002"
    found = export(version, tmp_path / "plain")
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == found["files"]
    assert found["step"] == 2
    base = AutoModelForCausalLM.from_pretrained(model.directory)
    assert PeftModel.from_pretrained(base, tmp_path / "plain").peft_config["default"].r == 16
    with pytest.raises(StepFailedError, match="exists already"):
        export(version, tmp_path / "plain")


def test_a_line_that_is_no_sample_is_named(tmp_path: Path, sample: Make) -> None:
    file = tmp_path / "samples.jsonl"
    good = json.dumps(sample(1).to_json())
    file.write_text(f"{good}\n\n{good}\n")
    assert read_samples(file) == (sample(1), sample(1))
    file.write_text(f'{good}\n{{"sample_id": "x"}}\n')
    with pytest.raises(ContractError, match=r"samples.jsonl:2: .*missing"):
        read_samples(file)


def test_a_configuration_is_a_file_and_changes(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"lr": 0.5, "loss": {"rl_weight": 2.0}}')
    config = read_config(file, ["lr=2e-4", "loss.opd_kind=full_kl", "share_prefixes=false"])
    assert (config.lr, config.loss.rl_weight, config.loss.opd_kind) == (2e-4, 2.0, "full_kl")
    assert config.share_prefixes is False
    for change, message in (("lr", "name=value"), ("lr=7", "StepConfig.lr"), ("speed=1", "unknown field")):
        with pytest.raises(ContractError, match=message):
            read_config(None, [change])


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainer", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        timeout=400,
        check=False,
    )


def test_the_command_line_trains_on_a_file(plan: Plan, tiny_directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(sample.to_json()) + "\n" for sample in plan.samples))
    ended = command(
        "train", "--model", tiny_directory, "--samples", file, "--out", plan.out, "--batch", 2, "--device", "cpu",
        "--set", "lr=2e-3", "--set", "max_rollout_k3=1e9", "--set", "min_ess=0",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    reports = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [report["outcome"] for report in reports] == ["made", "no_op", "made"]
    assert (plan.out / "step-000002" / WEIGHTS).exists()


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    ended = command("export", "--adapter", tmp_path / "no", "--out", tmp_path / "x")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"trainer: {tmp_path / 'no'}: FileNotFoundError")
