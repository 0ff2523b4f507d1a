"""The child process as workers see it: lines in, lines out, and a life of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tests.tiny_model import build_tiny_model
from trainer.contracts import SampleInput, StepRequest
from trainer.model.policy import PolicyModel
from trainer.step import run_step

from .conftest import HINTED, PROMPT

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def talk(command: list[str], lines: list[object]) -> tuple[list[dict[str, Any]], int]:
    """Everything the child says to these lines, and how it ended when the input did."""
    sent = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    child = subprocess.run(
        command,
        input=sent,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        timeout=400,
        check=False,
    )
    return [json.loads(line) for line in child.stdout.splitlines()], child.returncode


def serve(directory: Path) -> list[str]:
    return [sys.executable, "-m", "trainer", "serve", "--model", str(directory), "--device", "cpu"]


def test_the_child_answers_each_line_and_outlives_bad_ones(
    tiny_directory: Path, sample: Callable[..., SampleInput], request_for: Callable[..., StepRequest]
) -> None:
    step = request_for("r1", [sample(1, hint_prompt_ids=(HINTED,))], probe_ids=(PROMPT,))
    answers, code = talk(
        serve(tiny_directory),
        [
            "not json",
            "[1]",
            {"kind": "dance", "run_id": "r0"},
            {**step.to_json(), "config": {"lr": 7}},
            {"kind": "ping", "run_id": "p"},
            step.to_json(),
            {"kind": "score", "run_id": "s", "sequences": [PROMPT], "adapter_dir": step.out_dir},
            {"kind": "score", "run_id": "s", "sequences": [[1, 99_999]]},
        ],
    )
    assert code == 0
    assert answers[0] == {
        "kind": "ready", "model": str(tiny_directory), "device": "cpu", "dtype": "float32", "ranks": 1,
        "vocab_size": 320, "max_tokens": 2048, "parameters": 94_528,
    }  # fmt: skip
    told = [answer for answer in answers[1:] if answer["kind"] != "progress"]
    assert [(answer["kind"], answer["run_id"]) for answer in told] == [
        ("error", ""), ("error", ""), ("error", "r0"), ("error", "r1"), ("pong", "p"), ("report", "r1"),
        ("scores", "s"), ("error", "s"),
    ]  # fmt: skip
    assert {answer["code"] for answer in told if answer["kind"] == "error"} == {"bad_request"}
    assert told[3]["message"] == "StepConfig.lr: value 7 is outside [0, 1]"
    assert told[5]["outcome"] == "made"
    assert told[6]["logprobs"][0] == pytest.approx(told[5]["artefact"]["probe"][0]["logprobs"], abs=1e-6)
    assert any(answer["kind"] == "progress" and answer["phase"] == "learn" for answer in answers)


def test_one_request_from_a_file_and_its_exit_status(
    tiny_directory: Path,
    tmp_path: Path,
    sample: Callable[..., SampleInput],
    request_for: Callable[..., StepRequest],
) -> None:
    request = request_for("r1", [sample(1, hint_prompt_ids=(HINTED,))])
    Path(request.out_dir).mkdir()
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request.to_json()))
    command = [
        sys.executable, "-m", "trainer", "step", "--model", str(tiny_directory), "--request", str(file),
    ]  # fmt: skip
    answers, code = talk(command, [])
    assert ([answer["kind"] for answer in answers], answers[0]["code"], code) == (
        ["report"],
        "out_dir_exists",
        1,
    )


def test_a_directory_that_is_no_model_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    child = subprocess.run(
        serve(tmp_path), input="", capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, check=False
    )
    assert (child.returncode, child.stdout) == (2, "")
    assert child.stderr.splitlines()[-1].startswith(f"trainer: {tmp_path}: no readable config.json")


@pytest.mark.parametrize("shared_by", [2, 1], ids=["tensor-parallel", "data-parallel"])
def test_two_ranks_make_the_steps_of_one(
    shared_by: int,
    tmp_path: Path,
    sample: Callable[..., SampleInput],
    request_for: Callable[..., StepRequest],
    model: PolicyModel,
) -> None:
    directory = build_tiny_model(tmp_path / "qwen2", family="qwen2")
    alone = PolicyModel(directory, ranks=model.ranks, dtype=model.dtype)
    samples = [
        sample(1, reward=1.0, output_logprobs=None, hint_prompt_ids=(HINTED,)),
        sample(2, length=9, output_logprobs=None, hint_prompt_ids=(HINTED,)),
        sample(3, length=5, reward=-1.0),
    ]
    parent = None
    for name in ("1", "2"):
        # Adam's first step is the gradient's sign,
        # which noise decides where a gradient is zero: a large epsilon
        request = request_for(
            f"one-{name}",
            samples,
            parent_dir=parent,
            probe_ids=(PROMPT,),
            adam_eps=1e-2,
            loss_opd_kind="full_kl",
            max_rollout_k3=1e6,
            min_ess=0.0,
            token_budget=16,
        )
        one = run_step(alone, request)
        assert one.artefact is not None, one.reason
        parent = one.artefact.dir
    lines = []
    for name, parent_dir in (("1", None), ("2", str(tmp_path / "two-1"))):
        twin = request_for(
            f"two-{name}",
            samples,
            parent_dir=parent_dir,
            probe_ids=(PROMPT,),
            adam_eps=1e-2,
            loss_opd_kind="full_kl",
            max_rollout_k3=1e6,
            min_ess=0.0,
            token_budget=16,
        )
        lines.append(twin.to_json())
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    answers, code = talk([*torchrun, *serve(directory)[2:], "--tensor-parallel", str(shared_by)], lines)
    assert code == 0
    two = [answer for answer in answers if answer["kind"] == "report"]
    assert [answer["outcome"] for answer in two] == ["made", "made"]
    assert answers[0]["ranks"] == 2
    for name in ("loss", "grad_norm", "step_logprob_abs_diff"):
        assert two[1]["metrics"][name] == pytest.approx(one.metrics[name], rel=1e-3, abs=1e-6)
    mine = load_file(Path(one.artefact.dir) / "adapter_model.safetensors")
    theirs = load_file(tmp_path / "two-2" / "adapter_model.safetensors")
    assert mine.keys() == theirs.keys()
    assert max((mine[name] - theirs[name]).abs().max().item() for name in mine) < 1e-4
