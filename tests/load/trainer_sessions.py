"""`python -m tests.load.trainer_sessions`: a session as one sequence against one turn a row.

The same samples, rewards only, the same adapter, one step of AdamW: ours against transformers + PEFT without padding,
both as one forward for each turn and as turns packed in a row; the faster of the two is what `ratio` compares with.
Their log-probabilities are taken at reply tokens only, as ours are. The gradients of all arms are compared first.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from tests.load.measure import publish, random_model, side_by_side
from trainer.artefact import write_artefact
from trainer.contracts import BaselineState, LoraSpec, LossConfig, SampleInput, StepConfig
from trainer.learn import Lot, Material, accumulate
from trainer.lora.state import Adapter, peft_config
from trainer.model.parallel import choose_device, join
from trainer.model.policy import PolicyModel
from trainer.optim import clip_gradient
from trainer.signals import Signal, read_signals, shares

SPEC = LoraSpec()
TURNS, ADDED, REPLY = 8, 40, 60


def sessions(count: int, vocab: int, *, seed: int) -> list[SampleInput]:
    """Each turn adds `ADDED` ids of a user and `REPLY` ids of a reply to the one before it."""
    generator = torch.Generator().manual_seed(seed)
    samples = []
    for number in range(count):
        prompt: tuple[int, ...] = ()
        for turn in range(TURNS):
            drawn = torch.randint(3, vocab, (ADDED + REPLY,), generator=generator).tolist()
            prompt = (*prompt, *drawn[:ADDED])
            samples.append(
                SampleInput(
                    sample_id=f"{number}.{turn}",
                    prompt_ids=prompt,
                    output_ids=tuple(drawn[ADDED:]),
                    output_logprobs=(-1.0,) * REPLY,
                    reward=1.0 if turn % 3 else -1.0,
                )
            )
            prompt = (*prompt, *drawn[ADDED:])
    return samples


class Ours:
    """The trainer's own pass."""

    def __init__(
        self, directory: Path, adapter_directory: Path, samples: list[SampleInput], dtype: str
    ) -> None:
        self.model = PolicyModel(directory, ranks=join(choose_device("cpu")), dtype=getattr(torch, dtype))
        # without ratios: the loss is -advantage x log p for every arm, the numbers of a fresh rollout
        self.config = StepConfig(loss=LossConfig(opd_weight=0.0))
        self.adapter = Adapter(self.model, SPEC)
        self.adapter.initialise(1)
        with torch.no_grad():
            for pair in self.adapter.pairs.values():
                pair.b.normal_(0, 0.02, generator=torch.Generator().manual_seed(pair.b.numel()))
        self.signals = [
            Signal(
                sample=signal.sample, rl=True, opd=False, advantage=signal.advantage, teachers=(),
                in_ratio=False, reason="",
            )
            for signal in read_signals(
                samples, self.config, BaselineState(mean=0.0, count=1.0), vocab=self.model.shape.vocab,
                max_tokens=self.model.shape.max_tokens,
            )
        ]  # fmt: skip
        self.adamw = torch.optim.AdamW(self.adapter.parameters, lr=1e-9, foreach=True)
        write_artefact(
            adapter_directory,
            weights=self.adapter.peft_tensors(), optimizer=self.adapter.optimizer_tensors(),
            config=peft_config(SPEC, "bench"), step=0, parent_hash=None, probe=(), about={},
        )  # fmt: skip

    def gradient(self) -> None:
        self.adamw.zero_grad()
        material = Material(self.signals, {}, base={}, prox={})
        lot = Lot(material, dict(enumerate(shares(self.signals, self.config))), self.config)
        accumulate(self.model, lot, (), lambda _: None)

    def step(self) -> None:
        self.gradient()
        clip_gradient(self.adapter.pairs, self.model.ranks, 1.0)
        self.adamw.step()


class Theirs:
    """transformers + PEFT."""

    def __init__(
        self, directory: Path, adapter_directory: Path, samples: list[SampleInput], dtype: str, *, pack: int
    ) -> None:
        base = AutoModelForCausalLM.from_pretrained(
            directory, attn_implementation="sdpa", dtype=getattr(torch, dtype)
        )
        self.model = PeftModel.from_pretrained(base, adapter_directory, is_trainable=True)
        self.adamw = torch.optim.AdamW(
            [p for p in self.model.parameters() if p.requires_grad], lr=1e-9, foreach=True
        )
        self.tokens = sum(len(sample.output_ids) for sample in samples)
        self.groups = [samples[start : start + pack] for start in range(0, len(samples), pack)]

    def gradient(self) -> None:
        self.adamw.zero_grad()
        for group in self.groups:
            ids, positions, where, advantage = [], [], [], []
            for sample in group:
                row = sample.prompt_ids + sample.output_ids
                where += range(len(ids) + len(sample.prompt_ids) - 1, len(ids) + len(row) - 1)
                ids += row
                positions += range(len(row))
                advantage += [sample.reward] * len(sample.output_ids)
            inputs, keep = torch.tensor([ids]), torch.tensor(where)
            logits = self.model(
                input_ids=inputs, position_ids=torch.tensor([positions]), logits_to_keep=keep, use_cache=False
            ).logits[0]
            logp = logits.float().log_softmax(1).gather(1, inputs[0, keep + 1, None])[:, 0]
            (-(logp * torch.tensor(advantage)).sum() / self.tokens).backward()

    def step(self) -> None:
        self.gradient()
        torch.nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], 1.0)
        self.adamw.step()


def gap(ours: Ours, theirs: Theirs) -> tuple[float, float]:
    """Largest difference of a down projection's gradient, and the largest gradient."""
    found = dict(theirs.model.named_parameters())
    worst = largest = 0.0
    for name, pair in ours.adapter.pairs.items():
        if not name.endswith("linear_fc2"):
            continue
        prefix = f"base_model.model.model.layers.{name.split('.')[2]}.mlp.down_proj"
        for side, mine in (("A", pair.a.grad), ("B", pair.b.grad)):
            other = found[f"{prefix}.lora_{side}.default.weight"].grad
            if mine is None or other is None:
                raise ValueError(f"{name} has no gradient")
            worst = max(worst, (mine - other).abs().max().item())
            largest = max(largest, other.abs().max().item())
    return worst, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("tiny", "0.1b"), default="0.1b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        directory = random_model(Path(folder) / "model", options.shape, seed=options.seed)
        adapter = Path(folder) / "adapter"
        samples = sessions(options.sessions, 2000, seed=options.seed)
        ours = Ours(directory, adapter, samples, options.dtype)
        apart = Theirs(directory, adapter, samples, options.dtype, pack=1)
        packed = Theirs(directory, adapter, samples, options.dtype, pack=TURNS)
        for arm in (ours, apart, packed):
            arm.gradient()
        (worst, largest), (packed_worst, _) = gap(ours, apart), gap(ours, packed)
        timings = side_by_side(
            {
                "attune": ours.step,
                "peft, a turn a forward": apart.step,
                "peft, packed turns": packed.step,
            },
            repeats=options.repeats,
        )
    mine = timings["attune"].median
    best = min(timing.median for name, timing in timings.items() if name != "attune")
    publish(
        "trainer_sessions",
        {
            "ratio": best / mine,
            "turns_per_s": len(samples) / mine,
            "turns_per_s_peft": len(samples) / best,
            "token_ratio": sum(len(s.prompt_ids + s.output_ids) for s in samples)
            / (options.sessions * TURNS * (ADDED + REPLY)),
            "gradient_gap": max(worst, packed_worst),
            "gradient_max": largest,
            "shape": options.shape,
            "dtype": options.dtype,
            "sessions": options.sessions,
            "seed": options.seed,
        },
        timings,
    )


if __name__ == "__main__":
    main()
