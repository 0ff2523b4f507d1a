"""Draw `docs/drift.png`: a simulated policy whose engine drifts away until training stops by itself.

The ledger, the commits, the readings, the bounds and the pause are the real ones, on a Postgres of its own.
What is made up is what a trainer would report of each step: an engine that differs from the learner a little
more every time, and the rewards. Replies that grow are rows of the ledger. `python -m tests.load.drift [--to
FILE] [--steps N] [--seed S]`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "drift.png"
INSIDE = "ATTUNE_BENCH_INSIDE"
CALM_STEPS = 6


def main() -> None:
    """Simulate, draw and say what happened; on servers of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, default=PICTURE, help="the PNG")
    parser.add_argument("--steps", type=int, default=40, help="at most; training stops by itself before")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [sys.executable, "-m", "embedded.throwaway", "--", sys.executable, "-m", "tests.load.drift"]
        raise SystemExit(subprocess.run([*command, *sys.argv[1:]], check=False).returncode)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    owner = {"DATABASE_URL": os.environ["DATABASE_OWNER_URL"], "DATABASE_ROLE": "attune_owner"}
    subprocess.run(
        [sys.executable, str(MANAGE), "migrate", "--verbosity", "0"], env=os.environ | owner, check=True
    )
    import django

    django.setup()
    with tempfile.TemporaryDirectory() as store:
        said = simulate(options.steps, random.Random(options.seed), Path(store))
    subprocess.run(
        [
            sys.executable,
            str(MANAGE),
            "drift",
            "--tenant",
            "acme",
            "--policy",
            "default",
            "--plot",
            options.to,
        ],
        check=True,
    )
    print(json.dumps(said, indent=2))


def simulate(steps: int, chance: random.Random, store: Path) -> dict[str, Any]:
    """Make steps whose engine drifts away, until training is paused; return how that came about."""
    from django.conf import settings

    from apps.adapters.models import Policy
    from apps.learning.drift.models import Crossing
    from apps.learning.drift.pauses import why_paused
    from apps.learning.models import Sample
    from kernel.tenancy import tenant_scope
    from tests.apps.learning.drifting import step
    from tests.apps.learning.ledger import REPLY
    from tests.chat_model import END, ids_of
    from tests.tenants import add_somebody

    settings.ADAPTER_STORE = store
    somebody = add_somebody()
    made = 0
    with tenant_scope(somebody.tenant.id):

        def answer(sample: Sample) -> None:
            """Let a reply grow with the steps, and its reward be what a judge gives that likes the length."""
            longer = 1.0 + 0.06 * max(0, made - CALM_STEPS) + chance.uniform(-0.1, 0.1)
            ids = [*(ids_of(REPLY) * 4)[: int(len(REPLY) * longer)], END]
            ids = [token + 300 * place for place, token in enumerate(ids[:-1])] + ids[-1:]  # none repeats
            sample.turn.output_ids, sample.turn.output_logprobs = ids, [-0.5] * len(ids)
            sample.turn.save(update_fields=["output_ids", "output_logprobs"])
            sample.reward = 1.0 if chance.random() < 0.5 + 0.012 * made else -1.0
            sample.save(update_fields=["reward"])

        while made < steps and not why_paused(somebody.policy.id):
            gap = 0.04 * 1.2 ** max(0, made - CALM_STEPS)
            step(
                somebody,
                each=answer,
                train_rollout_logprob_abs_diff=gap + chance.uniform(0.0, 0.01),
                rollout_k3=2.0 * gap**2,
                ratio_mean=1.0 + gap * chance.uniform(-0.02, 0.08),
                ess=max(0.0, 0.97 - gap),
                mask_fraction=gap**2 / 5,
                step_k3=chance.uniform(0.01, 0.03),
                step_logprob_abs_diff=chance.uniform(0.03, 0.05),
                staleness={"0": 6, "1": 2},
            )
            made += 1
        policy = Policy.objects.select_related("live").get(id=somebody.policy.id)
        return {
            "steps": made,
            "live": policy.live.number if policy.live else 0,
            "paused": why_paused(policy.id),
            "crossings": [f"{one.measure}: {one.words}" for one in Crossing.objects.order_by("created_at")],
        }


if __name__ == "__main__":
    main()
