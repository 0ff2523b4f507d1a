"""`python -m trainer`: a long-lived child (`serve`), one request from a file (`step`),
or a whole training from a file of samples (`train`), a look without a step (`evaluate`),
a plain PEFT directory (`export`)."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from trainer.codec import Contract
    from trainer.model.policy import PolicyModel


def main(arguments: list[str] | None = None) -> int:
    """0 where it ended well; 1 where the one request did not succeed;
    2 where the model or an option is wrong."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # megatron-core says at length which accelerators it does not find
    logging.getLogger("megatron").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="megatron")
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    # idle threads that spin would take the engine's core away
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from trainer.errors import TrainerError
    from trainer.model.shape import ModelShape

    try:
        if options.command == "export":
            return _export(options)
        # before anything heavy is imported: a wrong path should not take ten seconds to say so
        ModelShape.from_directory(options.model)
        return _run(options)
    except (TrainerError, OSError, ValueError) as error:
        print(f"trainer: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    import torch

    from trainer.model.parallel import choose_device, join, leave
    from trainer.model.policy import PolicyModel
    from trainer.serve import serve, take_stdout

    protocol = take_stdout()
    torch.set_num_threads(options.threads)
    ranks = join(choose_device(options.device), options.tensor_parallel)
    try:
        model = PolicyModel(options.model, ranks=ranks, dtype=getattr(torch, options.dtype))
        if options.command == "serve":
            serve(model, sys.stdin, protocol)
            return 0
        if options.command in ("train", "evaluate"):
            return _samples(model, options, protocol)
        return _once(model, options.request.read_text(encoding="utf-8"), protocol)
    finally:
        leave()


def _export(options: argparse.Namespace) -> int:
    from trainer.cli import export

    print(json.dumps(export(options.adapter, options.out)))
    return 0


def _samples(model: PolicyModel, options: argparse.Namespace, protocol: TextIO) -> int:
    from trainer.cli import Plan, evaluate, read_config, read_samples, train

    def say(message: Contract) -> None:
        if model.ranks.first:
            print(json.dumps(message.to_json()), file=protocol, flush=True)

    plan = Plan(
        samples=read_samples(options.samples),
        config=read_config(options.config, options.set),
        out=options.out,
        batch=options.batch,
        parent=options.adapter,
        seed=options.seed,
        dry_run=options.dry_run,
    )
    if options.command == "evaluate":
        return 1 if evaluate(model, plan, say).outcome in ("refused", "failed") else 0
    return 1 if train(model, plan, say) else 0


def _once(model: PolicyModel, line: str, protocol: TextIO) -> int:
    from trainer.contracts import ErrorLine, StepReport
    from trainer.serve import answer

    failed = False

    def say(message: Contract) -> None:
        nonlocal failed
        failed = failed or isinstance(message, ErrorLine)
        failed = failed or (isinstance(message, StepReport) and message.outcome in ("refused", "failed"))
        if model.ranks.first:
            print(json.dumps(message.to_json()), file=protocol, flush=True)

    answer(model, line, say)
    return 1 if failed else 0


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Trains LoRA adapters on a frozen base. Start it under torchrun for several ranks.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve", help="read JSON lines (trainer/contracts.py) on standard input, answer on standard output"
    )
    step = commands.add_parser("step", help="carry out one request from a file, then end")
    step.add_argument(
        "--request", type=Path, required=True, help="file with one request, as a line of `serve`"
    )
    train = commands.add_parser(
        "train",
        help="one step for each batch of a file of samples; goes on where it was stopped",
        description="SAMPLES has one sample as JSON a line (trainer.contracts.SampleInput). Reports come as JSON lines.",
    )
    train.add_argument("--out", type=Path, required=True, help="directory of the versions, step-<batch>")
    train.add_argument("--batch", type=_positive, default=16, help="samples in a step (default: 16)")
    train.add_argument("--dry-run", action="store_true", help="report losses and drift, step nowhere")
    evaluate = commands.add_parser("evaluate", help="losses and drift of an adapter on a file of samples")
    evaluate.set_defaults(out=Path("unused"), batch=1, dry_run=True)
    for command in (train, evaluate):
        command.add_argument(
            "--samples", type=Path, required=True, help="JSON lines, in the order of learning"
        )
        command.add_argument("--adapter", type=Path, help="version to start from (default: a fresh adapter)")
        command.add_argument("--config", type=Path, help="JSON of trainer.contracts.StepConfig")
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="lr=2e-4, loss.opd_kind=full_kl, ...",
        )
        command.add_argument("--seed", type=int, default=0)
    export = commands.add_parser("export", help="a version's weights as a plain PEFT directory")
    export.set_defaults(threads=1)
    export.add_argument("--adapter", type=Path, required=True, help="version to export")
    export.add_argument("--out", type=Path, required=True, help="directory to write; must not exist")
    for command in (serve, step, train, evaluate):
        command.add_argument("--model", type=Path, required=True, help="plain transformers directory")
        command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
        command.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
        command.add_argument(
            "--tensor-parallel",
            type=int,
            default=0,
            help="ranks that share one base; the others are replicas of it (default: all share one)",
        )
        command.add_argument(
            "--threads",
            type=int,
            default=int(os.environ.get("TRAINER_THREADS", "1")),
            help="torch threads on the CPU (default: $TRAINER_THREADS, or 1)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
