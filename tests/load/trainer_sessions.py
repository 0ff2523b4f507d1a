"""A session as one sequence against one turn a row: transformers + PEFT without padding, and TRL's GRPO step.

The same samples, rewards only, the same adapter, one step of AdamW. PEFT's arm takes one forward for each
turn, so nothing is padded and no attention crosses turns; `--packed` also measures turns packed in a row, and
`ratio` compares with the faster. Its log-probabilities are taken at reply tokens only, as ours are. TRL's arm
is its trainer's own loss with its defaults (padding, gradient checkpointing) and takes part where `trl` can
be imported. The gradients of the last step are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from tests.load._measure import publish, random_model, side_by_side
from tests.tiny_model import build_tokenizer
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
        self.unclip = max(1.0, clip_gradient(self.adapter.pairs, self.model.ranks, 1.0))
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
        norm = torch.nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], 1.0)
        self.unclip = max(1.0, norm.item())
        self.adamw.step()


class Trl:
    """TRL's GRPOTrainer, its loss on a batch that is ready: no generation, no rewards."""

    def __init__(
        self,
        directory: Path,
        adapter_directory: Path,
        samples: list[SampleInput],
        dtype: str,
        folder: Path,
        *,
        rows: int,
    ) -> None:
        from datasets import Dataset
        from datasets.table import InMemoryTable
        from trl import GRPOConfig, GRPOTrainer

        base = AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, dtype))
        settings = GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            report_to=[],
            per_device_train_batch_size=TURNS,
            num_generations=TURNS,
        )
        self.trainer = GRPOTrainer(
            model=PeftModel.from_pretrained(base, adapter_directory, is_trainable=True),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=settings,
            train_dataset=Dataset(InMemoryTable.from_pydict({"prompt": ["x"]}), fingerprint="none"),
            processing_class=build_tokenizer(),
        )
        self.model = self.trainer.model.train()
        self.trainer.current_gradient_accumulation_steps = 1
        self.adamw = torch.optim.AdamW(
            [p for p in self.model.parameters() if p.requires_grad], lr=1e-9, foreach=True
        )
        total = sum(len(sample.output_ids) for sample in samples)
        self.batches = [
            self._inputs(samples[start : start + rows], total) for start in range(0, len(samples), rows)
        ]

    @staticmethod
    def _inputs(group: list[SampleInput], total: int) -> dict[str, torch.Tensor]:
        """As its data collation leaves them: prompts padded left, completions right."""
        longest = max(len(sample.prompt_ids) for sample in group)
        missing = [longest - len(sample.prompt_ids) for sample in group]
        return {
            "prompt_ids": torch.tensor(
                [[0] * m + list(s.prompt_ids) for m, s in zip(missing, group, strict=True)]
            ),
            "prompt_mask": torch.tensor([[0] * m + [1] * (longest - m) for m in missing]),
            "completion_ids": torch.tensor([list(sample.output_ids) for sample in group]),
            "completion_mask": torch.ones(len(group), REPLY, dtype=torch.long),
            "advantages": torch.tensor([sample.reward or 0.0 for sample in group]),
            "num_items_in_batch": torch.tensor(float(total)),
        }

    def gradient(self) -> None:
        self.adamw.zero_grad()
        for inputs in self.batches:
            self.trainer.compute_loss(self.model, inputs).backward()

    def step(self) -> None:
        self.gradient()
        norm = torch.nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], 1.0)
        self.unclip = max(1.0, norm.item())
        self.adamw.step()


def gap(ours: Ours, theirs: Theirs | Trl) -> tuple[float, float]:
    """Largest difference of a down projection's gradient before its clip, and the largest gradient.

    Clips differ: here q, k and v share one A, there each has its own, so the norms are not the same.
    """
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
            worst = max(worst, (mine * ours.unclip - other * theirs.unclip).abs().max().item())
            largest = max(largest, (other * theirs.unclip).abs().max().item())
    return worst, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("tiny", "0.1b"), default="0.1b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--trl-rows", type=int, default=2, help="turns that TRL pads to one length (memory)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        directory = random_model(Path(folder) / "model", options.shape, seed=options.seed)
        adapter = Path(folder) / "adapter"
        samples = sessions(options.sessions, 2000, seed=options.seed)
        ours = Ours(directory, adapter, samples, options.dtype)
        arms: dict[str, Ours | Theirs | Trl] = {
            "attune": ours,
            "peft": Theirs(directory, adapter, samples, options.dtype, pack=1),
        }
        if options.packed:
            arms["peft, packed"] = Theirs(directory, adapter, samples, options.dtype, pack=TURNS)
        if importlib.util.find_spec("trl"):
            arms["trl"] = Trl(
                directory, adapter, samples, options.dtype, Path(folder) / "trl", rows=options.trl_rows
            )
        timings = side_by_side({name: arm.step for name, arm in arms.items()}, repeats=options.repeats)
        gaps = {name: gap(ours, arm) for name, arm in arms.items() if not isinstance(arm, Ours)}
    mine = timings["attune"].median
    best = min(timing.median for name, timing in timings.items() if name.startswith("peft"))
    publish(
        "trainer_sessions",
        {
            "ratio": best / mine,
            "turns_per_s": len(samples) / mine,
            "turns_per_s_peft": len(samples) / best,
            "token_ratio": sum(len(s.prompt_ids + s.output_ids) for s in samples)
            / (options.sessions * TURNS * (ADDED + REPLY)),
            **({"ratio_trl": timings["trl"].median / mine} if "trl" in timings else {}),
            **{f"gradient_gap_{name}": worst for name, (worst, _) in gaps.items()},
            "gradient_max": max(largest for _, largest in gaps.values()),
            **({"trl_rows": options.trl_rows} if "trl" in timings else {}),
            "shape": options.shape,
            "dtype": options.dtype,
            "sessions": options.sessions,
            "seed": options.seed,
        },
        timings,
    )


if __name__ == "__main__":
    main()
