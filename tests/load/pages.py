"""Times of every list page of dashboard, API and console with a million turns in the table, against ten thousand.

Two databases of one real Postgres hold one tenant each, the smaller one the newest rows of the larger one:
turns and, in proportion, sessions, samples, runs of 64 samples, versions, judgements, feedback, preferences,
alerts and audit rows; what is rare fills a page of both (`tests.load._grown`). Pages are found in the URLconf
(`tests.load._every_page`); those that lead on are asked for once more halfway back in time. The owner, or of
the console an operator, asks through all of Django for a page with few and with many turns in turn, so that a
slow moment hits both. What workers sum up of turns is summed up before. `ratio` is the worst page's 95th
percentile with many turns over the one with few.
"""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.load._grown import Shape, first_rows, grow, newest_ids

RESULTS = Path(os.environ.get("ATTUNE_HOME", "var")) / "bench"
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
INSIDE = "ATTUNE_BENCH_INSIDE"
BOUND = 1.5
NOTE = "filled by this benchmark: "
WARM = 3  # rounds that are not counted


def main() -> None:
    """Measure, print a table and write `bench/pages.json`; on servers of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=int, default=10_000, help="turns")
    parser.add_argument("--large", type=int, default=1_000_000, help="turns")
    parser.add_argument("--repeats", type=int, default=60, help="of each page, with few turns and with many")
    parser.add_argument("--only", default="", help="pages whose name has this in it")
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
    from tests.chat_model import build_chat_model

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    os.environ.setdefault("API_REQUESTS_PER_MINUTE", "1000000")
    # what it costs to tell a preference is counted in tokens
    model = build_chat_model(RESULTS / "chat-model")
    os.environ["MODEL_PATH"] = str(model.resolve())
    sizes = {"small": options.small, "large": options.large}
    origin, pages = prepare(sizes)
    askers = {size: Asker(size) for size in sizes}
    try:
        found = {}
        for page in pages:
            answers = {size: asker.ask(page) for size, asker in askers.items()}
            found[page["name"]] = dict.fromkeys(sizes, page)
            for size, turns in sizes.items():
                moment = origin - dt.timedelta(seconds=turns * Shape().seconds / 2)
                if further := halfway(page, moment, leads_on=answers[size]["older"]):
                    found.setdefault(further["name"], {})[size] = further
        # few rows may not lead on where many do
        found = {
            name: by_size
            for name, by_size in found.items()
            if options.only in name and by_size.keys() == sizes.keys()
        }
        times, queries = rounds(askers, found, options.repeats)
    finally:
        for asker in askers.values():
            asker.end()
    return result_of(times, queries) | {
        "sizes": {**sizes, "repeats": options.repeats},
        "shape": {size: asdict(Shape.of(turns)) for size, turns in sizes.items()},
        "versions": {name: version(name) for name in ("Django", "djangorestframework", "psycopg")},
        "machine": platform.processor() or platform.machine(),
    }


def prepare(sizes: dict[str, int]) -> tuple[dt.datetime, list[dict[str, str]]]:
    """Fill a database for each size, unless it is filled;
    returns the newest turn's moment and the pages to ask for."""
    import psycopg

    from embedded.database import with_database

    owner_url = os.environ["DATABASE_OWNER_URL"]
    _migrate(owner_url)
    import django

    django.setup()
    from django.db import connections

    from tests.load._every_page import every_page

    tenant, origin = _tenant()
    first = first_rows(tenant.pk)
    connections.close_all()
    connections["default"].close_pool()
    for size, turns in sizes.items():
        url, note = with_database(owner_url, f"pages_{size}"), f"{turns} turns, {asdict(Shape.of(turns))}"
        if _note(owner_url, size) == note:
            _migrate(url)
        else:
            _fill(owner_url, size, first, turns, origin)
            with psycopg.connect(url, autocommit=True) as database:
                database.execute(_sql("COMMENT ON DATABASE {} IS {}", f"pages_{size}", note))
        _manage("sum_up_turns", DATABASE_URL=with_database(os.environ["DATABASE_URL"], f"pages_{size}"))
    with psycopg.connect(owner_url) as database:
        ids = newest_ids(
            database.execute, sizes["large"], Shape.of(sizes["large"]), origin=origin.isoformat()
        )  # type: ignore[arg-type]
    logging.getLogger("django.request").setLevel(logging.ERROR)  # each address is asked what it may be asked
    ids |= {
        "policy": first["adapters.Policy"],
        "endpoint": first["alerts.WebhookEndpoint"],
        "key": first["keys.ApiKey"],
        "membership": first["accounts.Membership"],
    }
    return origin, [asdict(page) for page in every_page(tenant.slug, ids)]


def _migrate(url: str) -> None:
    _manage("migrate", DATABASE_URL=url, DATABASE_ROLE="attune_owner")


def _manage(command: str, **env: str) -> None:
    subprocess.run(
        [sys.executable, str(MANAGE), command, "--verbosity", "0"], env=os.environ | env, check=True
    )


def _tenant() -> tuple[Any, dt.datetime]:
    """Return the tenant, made with a row in every table where there is none, and when its newest turn was."""
    from apps.accounts.models import Tenant
    from apps.conversations.models import Turn
    from kernel.tenancy import system_scope
    from tests.apps.console.rows import fill, operator

    with system_scope("the benchmark's tenant"):
        if not Tenant.objects.exists():
            fill("acme", text="in plain words, and a few more of them, as people say them " * 4)
            operator()
        return Tenant.objects.get(), Turn.objects.latest("id").created_at


def _sql(statement: str, name: str, *literals: str) -> Any:
    from psycopg import sql

    return sql.SQL(statement).format(sql.Identifier(name), *map(sql.Literal, literals))  # type: ignore[arg-type]


def _note(owner_url: str, size: str) -> str | None:
    import psycopg

    with psycopg.connect(owner_url) as server:
        found = server.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            [f"pages_{size}"],
        ).fetchone()
    return found[0] if found else None


def _fill(owner_url: str, size: str, first: dict[str, Any], turns: int, origin: dt.datetime) -> None:
    import psycopg

    from embedded.database import with_database

    began = time.monotonic()
    with psycopg.connect(with_database(owner_url, "postgres"), autocommit=True) as server:
        server.execute(_sql("DROP DATABASE IF EXISTS {}", f"pages_{size}"))
        server.execute(_sql("CREATE DATABASE {} TEMPLATE attune", f"pages_{size}"))
    with psycopg.connect(with_database(owner_url, f"pages_{size}"), autocommit=True) as database:
        # as a standby writes: that rows name each other rightly follows from how they are made
        database.execute("SET session_replication_role = replica")
        database.execute("SET maintenance_work_mem = '512MB'")
        indexes = _drop_indexes(database)
        for what in grow(database.execute, first, turns, Shape.of(turns), origin=origin.isoformat()):  # type: ignore[arg-type]
            print(f"{time.monotonic() - began:6.0f} s  {size}: {what}", flush=True)
        for definition in indexes:  # one sort each, instead of a place for each row
            database.execute(definition.encode())
        print(f"{time.monotonic() - began:6.0f} s  {size}: {len(indexes)} indexes", flush=True)
        database.execute("VACUUM ANALYZE")
    print(f"{time.monotonic() - began:6.0f} s  {size}: {turns:,} turns are there", flush=True)


def _drop_indexes(database: Any) -> list[str]:
    """Drop all indexes that no constraint stands on; returns what makes them again."""
    found = database.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace"
        " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)"
    ).fetchall()
    for name, _ in found:
        database.execute(f"DROP INDEX {name}".encode())
    return [definition for _, definition in found]


class Asker:
    """A process that asks one of the databases for pages."""

    def __init__(self, size: str) -> None:
        from embedded.database import with_database

        env = os.environ | {
            "DATABASE_URL": with_database(os.environ["DATABASE_URL"], f"pages_{size}"),
            # what one database's pages leave in the cache is nothing to the other's
            "REDIS_URL": os.environ["REDIS_URL"].rpartition("/")[0] + ("/1" if size == "small" else "/2"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.load._asker"],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, page: dict[str, str]) -> dict[str, Any]:
        """Ask for a page once."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(page), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"nobody answers any more, {page['path']} was asked for")
        return dict(json.loads(line))

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def halfway(page: dict[str, str], moment: dt.datetime, *, leads_on: bool) -> dict[str, str] | None:
    """Return where a list leads on to the rows before `moment`, or None for what is no such list."""
    if page["face"] == "dashboard" and leads_on:
        query = {"before": f"{moment.isoformat()}~ffffffff-ffff-7fff-bfff-ffffffffffff"}
    elif page["face"] == "api":
        position = urlencode({"p": str(moment)})
        query = {"cursor": base64.b64encode(position.encode()).decode()}
    else:
        return None
    return page | {"name": f"{page['name']}, halfway", "path": f"{page['path']}?{urlencode(query)}"}


def rounds(
    askers: dict[str, Asker], pages: dict[str, dict[str, dict[str, str]]], repeats: int
) -> tuple[dict[str, dict[str, list[float]]], dict[str, dict[str, int]]]:
    """Ask for every page in turn, of both databases in changing order;
    returns milliseconds and queries by page and size."""
    times: dict[str, dict[str, list[float]]] = {name: {size: [] for size in askers} for name in pages}
    queries: dict[str, dict[str, int]] = {name: {} for name in pages}
    for number in range(repeats + WARM):
        for name, by_size in pages.items():
            for size in sorted(by_size, reverse=number % 2 == 0):
                answer = askers[size].ask(by_size[size])
                queries[name][size] = answer["queries"]
                if number >= WARM:
                    times[name][size].append(answer["ms"])
        if number % 10 == 0:
            print(f"round {number} of {repeats + WARM}", flush=True)
    return times, queries


def result_of(times: dict[str, dict[str, list[float]]], queries: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the figures of every page and the worst ratio."""
    pages = {}
    for name, by_size in times.items():
        figures: dict[str, Any] = {
            size: {"median": statistics.median(seen), "p95": statistics.quantiles(seen, n=20)[-1]}
            for size, seen in by_size.items()
        }
        for measure in ("median", "p95"):
            figures[f"ratio_{measure}"] = figures["large"][measure] / figures["small"][measure]
        pages[name] = figures | {"queries": queries[name]}
    return {
        "ratio": max(figures["ratio_p95"] for figures in pages.values()),
        "ratio_median": max(figures["ratio_median"] for figures in pages.values()),
        "over": sorted(name for name, figures in pages.items() if figures["ratio_p95"] > BOUND),
        "queries_differ": sorted(name for name, seen in queries.items() if seen["small"] != seen["large"]),
        "pages": pages,
    }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    head = [f"{result['sizes'][size]:,}" for size in ("small", "large")]
    print(f"{'p95, ms':44} {head[0]:>10} {head[1]:>10} {'ratio':>7} {'of medians':>11} {'queries':>8}")
    for name, page in sorted(result["pages"].items(), key=lambda one: -one[1]["ratio_p95"]):
        print(
            f"{name:44} {page['small']['p95']:10.1f} {page['large']['p95']:10.1f} {page['ratio_p95']:7.2f}"
            f" {page['ratio_median']:11.2f} {page['queries']['large']:8}"
        )
    print(f"worst ratio {result['ratio']:.2f}, of medians {result['ratio_median']:.2f}")
    print(f"above {BOUND}: {', '.join(result['over']) or 'none'}")
    if result["queries_differ"]:
        print(f"more queries where there are more turns: {', '.join(result['queries_differ'])}")


if __name__ == "__main__":
    main()
