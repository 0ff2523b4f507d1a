"""The real child on a tiny model: what is mapped to the trainer and back is what each side means."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from pytest_django import Settings
from transformers import AutoModelForCausalLM

from apps.adapters import store
from apps.adapters.models import AdapterVersion
from apps.adapters.preflight import preflight
from apps.engines.chat import chat_format
from apps.learning.models import Sample
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import HINT, add_turn, queue_run, states_of
from tests.apps.workers.trainers import train_run
from tests.tenants import Somebody, add_somebody
from tests.tiny_model import build_tiny_model
from trainer.contracts import StepReport, StepsRequest
from workers.trainer_command import trainer_command, trainer_environment
from workers.trainer_process import TrainerProcess
from workers.training import train_next


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def trainer(tiny_model: Path, settings: Settings) -> Iterator[TrainerProcess]:
    settings.MODEL_PATH = settings.TRAINER_MODEL_PATH = tiny_model
    settings.TRAINER_DEVICE = "cpu"
    settings.LORA_RANK, settings.LORA_ALPHA = 4, 8
    chat_format.cache_clear()
    process = TrainerProcess(trainer_command(), trainer_environment(os.environ))
    yield process
    process.end()


TEMPERATURE = 0.7
SAME = 1e-4  # nats: two implementations in float32


def sampled_with(
    model: Path, version: AdapterVersion | None, prompt: Sequence[int], reply: Sequence[int]
) -> list[float]:
    """Return what an engine would say of a reply:
    its log-probabilities at `TEMPERATURE`, by transformers and PEFT."""
    theirs: Any = AutoModelForCausalLM.from_pretrained(model)
    if version is not None:
        theirs = PeftModel.from_pretrained(theirs, store.absolute(version.path))
    with torch.no_grad():
        logits = theirs(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
    said = (logits / TEMPERATURE).log_softmax(1).gather(1, torch.tensor(reply)[:, None])
    return [float(logprob) for logprob in said[:, 0]]


def add_hinted_samples(
    somebody: Somebody, count: int, *, model: Path, version: AdapterVersion | None = None
) -> None:
    chat = chat_format()
    for number in range(count):
        asked = [{"role": "user", "content": f"What is comet {number}?"}]
        reply = chat.render([{"role": "user", "content": "An earthquake is a shaking of the ground."}])[:12]
        prompt = chat.render(asked)
        turn = add_turn(
            somebody,
            messages=asked,
            sampling={"temperature": TEMPERATURE},
            prompt_ids=prompt,
            output_ids=reply,
            output_logprobs=sampled_with(model, version, prompt, reply),
            version=version,
        )
        with tenant_scope(somebody.tenant.id):
            Sample.objects.create(
                policy=somebody.policy,
                turn=turn,
                source="live",
                version=version,
                hints=[{"text": HINT, "prompt_ids": chat.hinted(asked, HINT)}],
            )


def test_two_steps_of_a_lineage_and_one_with_learning_rate_zero(
    somebody: Somebody, trainer: TrainerProcess, tiny_model: Path
) -> None:
    with tenant_scope(somebody.tenant.id):
        policy = somebody.policy
        policy.config = {"batch_size": 2}
        policy.save()
        versions: list[AdapterVersion] = []
        for _ in range(2):
            add_hinted_samples(somebody, 2, model=tiny_model, version=versions[-1] if versions else None)
            run = queue_run(somebody)
            train_run(run_id=run.id, trainer=trainer)
            run.refresh_from_db()
            assert (run.state, run.version is not None) == ("succeeded", True), run.reason
            assert run.metrics["train_rollout_logprob_abs_diff"] < SAME
            version = AdapterVersion.objects.latest("number")
            checked = preflight(store.absolute(version.path), sha256=version.sha256)
            assert (checked.rank, checked.alpha) == (4, 8)
            version.state = "ready"
            version.save()
            policy.live = version
            policy.save()
            versions.append(version)
        assert [(version.number, version.depth) for version in versions] == [(1, 1), (2, 2)]
        assert store.manifest(store.absolute(versions[1].path))["parent_hash"] == versions[0].sha256

        policy.config = {"batch_size": 2, "lr": 0}
        policy.save()
        add_hinted_samples(somebody, 2, model=tiny_model, version=versions[-1])
        run = queue_run(somebody)
        train_run(run_id=run.id, trainer=trainer)
        run.refresh_from_db()
        assert (run.state, run.version) == ("no_op", None)
        assert run.metrics["train_rollout_logprob_abs_diff"] < SAME
        assert AdapterVersion.objects.count() == 2
    assert states_of(somebody) == {"consumed": 4, "dropped": 2}


@pytest.mark.parametrize("tensor_parallel", [1, 2], ids=["two replicas", "one base cut in two"])
def test_a_step_over_two_ranks(
    somebody: Somebody, trainer: TrainerProcess, tiny_model: Path, settings: Settings, tensor_parallel: int
) -> None:
    settings.TRAINER_RANKS, settings.TRAINER_TENSOR_PARALLEL = 2, tensor_parallel
    ranks = TrainerProcess(trainer_command(), trainer_environment(os.environ))
    policy = somebody.policy
    policy.config = {"batch_size": 2}
    with tenant_scope(somebody.tenant.id):
        policy.save()
        add_hinted_samples(somebody, 2, model=tiny_model)
        run = queue_run(somebody)
        try:
            train_run(run_id=run.id, trainer=ranks)
            ready = ranks.ready
        finally:
            ranks.end()
        run.refresh_from_db()
        assert (run.state, run.version is not None) == ("succeeded", True), run.reason
    assert ready is not None
    assert ready.ranks == 2


def test_runs_in_company_write_the_bytes_of_runs_alone(
    somebody: Somebody,
    trainer: TrainerProcess,
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = [somebody, add_somebody("second"), add_somebody("third")]
    for number, one in enumerate(people):
        one.policy.config = {"batch_size": 1, "opd_kind": ("full_kl", "sampled", "full_kl")[number]}
        with tenant_scope(one.tenant.id):
            one.policy.save()
        add_hinted_samples(one, 1, model=tiny_model)
        queue_run(one)
    asked: list[StepsRequest] = []
    steps = TrainerProcess.steps

    def noted(process: TrainerProcess, request: StepsRequest, **others: Any) -> dict[str, StepReport]:
        asked.append(request)
        return steps(process, request, **others)

    monkeypatch.setattr(TrainerProcess, "steps", noted)
    assert train_next(trainer=trainer)
    assert [len(request.steps) for request in asked] == [3]
    for one, request in zip(people, asked[0].steps, strict=True):
        with tenant_scope(one.tenant.id):
            together = AdapterVersion.objects.get()
        alone = trainer.step(
            dataclasses.replace(request, out_dir=str(tmp_path / request.run_id)),
            deadline_s=60.0,
            keep_going=lambda _: "",
        )
        assert alone.artefact is not None
        assert alone.artefact.hash == together.sha256
        state = store.absolute(together.path) / "optimizer.state"
        assert state.read_bytes() == (tmp_path / request.run_id / "optimizer.state").read_bytes()
