"""Times of the dashboard's and the API's list pages with a million turns in the table, against ten thousand.

One tenant in a real Postgres; its turns, sessions, samples and judgements are copies of one of each with times of their
own, a session for every four turns. Every page is asked for by the owner, in this process and through all of Django, first with
the small table and then with the large one. `ratio` is the worst page's 95th percentile over the one before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(os.environ.get("ATTUNE_HOME", "var")) / "bench"
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
INSIDE = "ATTUNE_BENCH_INSIDE"
PAGES = ("sessions", "adapters", "runs", "keys", "members", "memory", "data")
LISTS = (
    "sessions",
    "turns",
    "samples",
    "judgements",
    "feedback",
    "runs",
    "versions",
    "policies",
    "keys",
    "members",
)


def main() -> None:
    """Measure, print a table and write `bench/pages.json`; on servers of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=int, default=10_000, help="turns")
    parser.add_argument("--large", type=int, default=1_000_000, help="turns")
    parser.add_argument("--repeats", type=int, default=40, help="of each page")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [sys.executable, "-m", "embedded.throwaway", "--", sys.executable, "-m", "tests.load.pages"]
        raise SystemExit(subprocess.run([*command, *sys.argv[1:]], check=False).returncode)
    result = measure(options)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "pages.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    show(result)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the times of every page, milliseconds, with both sizes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    os.environ.setdefault("API_REQUESTS_PER_MINUTE", "1000000")
    owner = {"DATABASE_URL": os.environ["DATABASE_OWNER_URL"], "DATABASE_ROLE": "attune_owner"}
    subprocess.run(
        [sys.executable, str(MANAGE), "migrate", "--verbosity", "0"], env=os.environ | owner, check=True
    )
    import django

    django.setup()
    from tests.apps.console.rows import fill

    rows = fill("acme", text="in plain words")
    times: dict[str, dict[str, list[float]]] = {}
    have = 0
    for turns in (options.small, options.large):
        began = time.monotonic()
        copies(rows, first=have, last=turns)
        have = turns
        print(f"{turns:,} turns after {time.monotonic() - began:.0f} s more", flush=True)
        for page, seen in asked(rows, options.repeats).items():
            times.setdefault(page, {})[str(turns)] = seen
    pages = {
        page: {
            size: {"median": statistics.median(seen), "p95": statistics.quantiles(seen, n=20)[-1]}
            for size, seen in by_size.items()
        }
        for page, by_size in times.items()
    }
    ratios = {
        page: sizes[str(options.large)]["p95"] / sizes[str(options.small)]["p95"]
        for page, sizes in pages.items()
    }
    return {
        "ratio": max(ratios.values()),
        "ratios": ratios,
        "milliseconds": pages,
        "sizes": {"small": options.small, "large": options.large, "repeats": options.repeats},
        "versions": {name: version(name) for name in ("Django", "djangorestframework", "psycopg")},
        "machine": platform.processor() or platform.machine(),
    }


def copies(rows: Any, *, first: int, last: int) -> None:
    """Fill the tables up to `last` turns, by copying a row of each inside Postgres."""
    from django.db import connection

    from kernel.tenancy import system_scope

    span = [first, last - 1]
    when = "now() - make_interval(secs => 3600 + (%(last)s - n) * 20)"
    # an id that follows from what the row is and from its number, so that rows can name each other
    key = "md5('{} ' || {})::uuid"
    session = key.format("session", "n / 4")
    turn = key.format("turn", "n")
    with system_scope("a benchmark's rows"), connection.cursor() as cursor:
        for table, source, step, changed in (
            (
                "conversations_session",
                rows.session.pk,
                4,
                {"id": session, "created_at": when, "last_turn_at": when, "external_id": "NULL"},
            ),
            (
                "conversations_turn",
                rows.turn.pk,
                1,
                {
                    "id": turn,
                    "session_id": session,
                    "created_at": when,
                    "completed_at": when,
                    "parent_id": "NULL",
                    "next_turn_id": "NULL",
                    "idempotency_key": "NULL",
                    "request_hash": "md5(n::text)",
                    "reply_hash": "md5('reply ' || n)",
                    "body_sha256": "md5('body ' || n)",
                },
            ),
            (
                "learning_sample",
                rows.sample.pk,
                1,
                {"id": key.format("sample", "n"), "turn_id": turn, "created_at": when},
            ),
            (
                "judging_judgement",
                _judgement(rows),
                1,
                {"id": key.format("judgement", "n"), "turn_id": turn, "created_at": when},
            ),
        ):
            cursor.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY 1", [table]
            )
            columns = [name for (name,) in cursor.fetchall()]
            values = ", ".join(changed.get(name, f'source."{name}"') for name in columns)
            names = ", ".join(f'"{name}"' for name in columns)
            cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} AS source,"  # noqa: S608 - names of our tables
                f" generate_series(%(begin)s, %(end)s, {step}) AS n WHERE source.id = %(source)s",
                {"begin": span[0], "end": span[1], "source": source, "last": last},
            )
    import psycopg

    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")


def _judgement(rows: Any) -> Any:
    from apps.judging.models import Judgement

    return Judgement.objects.filter(turn=rows.turn).values_list("pk", flat=True)[0]


def asked(rows: Any, repeats: int) -> dict[str, list[float]]:
    """Return the milliseconds of each page, in turn, so that a slow moment hits all of them."""
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(rows.user)
    paths = {name: f"/t/acme/{name}" for name in PAGES} | {f"api {name}": f"/api/{name}" for name in LISTS}
    seen: dict[str, list[float]] = {name: [] for name in paths}
    for number in range(repeats + 3):
        for name, path in paths.items():
            began = time.perf_counter()
            answer = client.get(path)
            took = (time.perf_counter() - began) * 1000
            if answer.status_code != 200:
                raise RuntimeError(f"{path} answered {answer.status_code}: {answer.content[:300]!r}")
            if number >= 3:
                seen[name].append(took)
    return seen


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    small, large = (str(result["sizes"][name]) for name in ("small", "large"))
    print(f"{'page':18} {'p95 ms, ' + small:>16} {'p95 ms, ' + large:>18} {'ratio':>7}")
    for page, sizes in result["milliseconds"].items():
        print(
            f"{page:18} {sizes[small]['p95']:16.1f} {sizes[large]['p95']:18.1f} {result['ratios'][page]:7.2f}"
        )
    print(f"worst ratio {result['ratio']:.2f}")


if __name__ == "__main__":
    main()
