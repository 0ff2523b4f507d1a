"""A step's result as a version: probed, written by the first rank, known to all."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from trainer.artefact import write_artefact
from trainer.contracts import Artefact, BaselineState, InitRequest, Probe, StepRequest
from trainer.errors import StepFailedError, StepRefusedError
from trainer.lora.state import Adapter, peft_config
from trainer.model.parallel import share
from trainer.model.policy import PolicyModel
from trainer.recorder import Recorder
from trainer.scoring import sequence_logprobs


def write(
    model: PolicyModel,
    adapter: Adapter,
    request: StepRequest | InitRequest,
    run: Recorder,
    *,
    parent_hash: str | None,
    baseline: BaselineState,
) -> Artefact:
    """Raises `StepRefusedError` where the probes are not finite, `StepFailedError` where the disk fails."""
    with run.phase("write", 1 + len(request.probe_ids)) as tick:
        probe = _probe(model, request)
        tick(len(request.probe_ids))
        weights, optimizer = adapter.peft_tensors(), adapter.optimizer_tensors()
        about = {"run_id": request.run_id, "seed": request.seed, "baseline": baseline.to_json()}
        if isinstance(request, StepRequest):
            about["config"] = request.config.to_json()
        return _on_first(
            model,
            lambda: write_artefact(
                Path(request.out_dir),
                weights=weights,
                optimizer=optimizer,
                config=peft_config(adapter.spec, request.base_model or model.directory.name),
                step=adapter.step,
                parent_hash=parent_hash,
                probe=probe,
                about=about,
            ),
        )


def artefact_bytes(model: PolicyModel, rank: int) -> int:
    """About what an artefact takes: weights and two moments of each, float32,
    and as much again to be safe."""
    shape = model.shape
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    widths = 4 * shape.hidden + 2 * (queries + keys) + queries + keys + 3 * (shape.hidden + shape.ffn)
    return 4 * 3 * 2 * rank * shape.layers * widths


def _probe(model: PolicyModel, request: StepRequest | InitRequest) -> tuple[Probe, ...]:
    """What the new adapter and the bare base say of the probe sequences. Raises where that is not finite."""
    size = {"budget": 4096, "chunk": 128}
    adapted = sequence_logprobs(model, request.probe_ids, **size)
    with model.bare():
        bare = sequence_logprobs(model, request.probe_ids, **size)
    if not all(math.isfinite(value) for one in adapted for value in one):
        raise StepRefusedError("not_finite", "the policy after the step is not finite on the probes")
    return tuple(
        Probe(ids=ids, logprobs=mine, base_logprobs=theirs)
        for ids, mine, theirs in zip(request.probe_ids, adapted, bare, strict=True)
    )


def _on_first(model: PolicyModel, write: Callable[[], Artefact]) -> Artefact:
    """Runs on the first rank; its result, or its failure, is every rank's."""
    result: tuple[Artefact | None, str, str] = (None, "", "")
    if model.ranks.first:
        try:
            result = (write(), "", "")
        except StepFailedError as error:
            result = (None, error.code, str(error))
    artefact, code, message = share(result, model.ranks)
    if artefact is None:
        raise StepFailedError(code, message)
    return artefact
