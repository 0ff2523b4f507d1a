"""Which processes `make up` runs, in what order, with which environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from embedded import parts
from embedded.home import REPOSITORY, Home, write_private
from embedded.preflight import port_from
from embedded.service import Service
from embedded.signs import Lasting, LogLine, responds
from kernel.roles import OWNER_ROLE

# tasks at a time (threads: they wait for other servers); training takes one. Of "ops" two may be at an engine for
# minutes, to teach and to choose, while leases end and lost work is found
CONCURRENCY = {"judge": 4, "ops": 4, "train": 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """One start: its services and what people need to know of it."""

    home: Home
    web_url: str
    api_base: str
    services: tuple[Service, ...]


def ports() -> dict[str, int]:
    """Return the ports that people see, by the variable that sets each."""
    return {
        "ATTUNE_GATEWAY_PORT": port_from("ATTUNE_GATEWAY_PORT", 8001),
        "ATTUNE_WEB_PORT": port_from("ATTUNE_WEB_PORT", 8000),
    }


def make(home: Home) -> Plan:
    """Return the plan for a home, from this process's environment; writes the home's environment file."""
    secrets = home.secrets()
    gateway_port, web_port = ports().values()
    web_url = os.environ.get("WEB_URL") or f"http://127.0.0.1:{web_port}"
    api_base = os.environ.get("API_BASE") or f"http://127.0.0.1:{gateway_port}/v1"
    database = parts.database(home, secrets)
    cache = parts.cache(home, secrets)
    served = parts.small_model(home)
    engine = parts.engine(home, secrets, served)
    own = {
        "ATTUNE_HOME": str(home.path),
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE") or "config.settings.local",
        "SECRET_KEY": os.environ.get("SECRET_KEY") or secrets["secret_key"],
        "ADAPTER_STORE": os.environ.get("ADAPTER_STORE") or str(home.adapters),
        "WEB_URL": web_url,
        "API_BASE": api_base,
        "GATEWAY_URL": f"http://127.0.0.1:{gateway_port}/v1",
        **database.env,
        **cache.env,
        **served.env,
        **engine.env,
    }
    # commands started by hand (`manage.py rollback ...`) read this file
    write_private(home.environment, json.dumps(own, indent=2) + "\n")
    env = {
        **os.environ,
        **own,
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # beside the engine: threads that spin while they wait cost it more than half its speed
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    services = [
        *(service for part in (database, cache, served, engine) for service in part.services),
        *_preparations(home, env, database),
        *_faces(home, env, gateway_port=gateway_port, web_port=web_port),
        *_workers(home, env),
    ]
    # a part that was replaced, or is done already, is not waited for
    present = {service.name for service in services}
    return Plan(
        home,
        web_url,
        api_base,
        tuple(
            replace(service, after=tuple(name for name in service.after if name in present))
            for service in services
        ),
    )


def _preparations(home: Home, env: Mapping[str, str], database: parts.Database) -> list[Service]:
    """Return what runs once: the schema, the first operator and key, a first look at the engines."""
    owner_env = {**env, "DATABASE_URL": database.owner_url, "DATABASE_ROLE": OWNER_ROLE}
    migrate = replace(
        _process(home, "migrate", owner_env, "manage.py", "migrate", "--no-input"),
        after=("postgres",),
        prepare=database.bootstrap,
        once=True,
        start_within_s=900.0,
    )
    reconcile = _process(home, "reconcile", env, "-m", "embedded.reconcile")
    preparations = [migrate, replace(reconcile, after=("migrate", "valkey", "engine"), once=True)]
    if not home.first_run.exists():
        first_run = _process(home, "first-run", env, "-m", "embedded.first_run")
        preparations.append(replace(first_run, after=("migrate", "valkey"), once=True))
    return preparations


def _faces(home: Home, env: Mapping[str, str], *, gateway_port: int, web_port: int) -> list[Service]:
    faces = []
    http = {"gateway": "apps.gateway.http:Protocol", "web": "auto"}
    for name, port, page in (("gateway", gateway_port, "healthz"), ("web", web_port, "accounts/login/")):
        served = _process(
            home,
            name,
            env,
            *("-m", "uvicorn", f"config.asgi_{name}:application", "--host", "127.0.0.1", "--port", str(port)),
            *("--http", http[name], "--no-access-log", "--no-server-header"),
            *("--timeout-graceful-shutdown", "5"),
        )
        faces.append(
            replace(
                served,
                after=("migrate", "valkey", "model"),
                ready=responds(f"http://127.0.0.1:{port}/{page}"),
                said_when_ready=f"http://127.0.0.1:{port}",
            )
        )
    return faces


def _workers(home: Home, env: Mapping[str, str]) -> list[Service]:
    celery = ("-m", "celery", "-A", "workers.app")
    workers = []
    for queue, tasks in CONCURRENCY.items():
        name = f"worker-{queue}"
        worker = _process(
            home,
            name,
            env,
            *(*celery, "worker", "-Q", queue, "-n", f"{queue}@%h", "-c", str(tasks)),
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        )
        line = LogLine(home.log(name), b" ready.")
        workers.append(
            replace(worker, after=("migrate", "valkey", "model"), prepare=line.forget, ready=line.ready)
        )
    schedule = str(home.run / "beat-schedule")
    for service in (
        _process(
            home, "beat", env, *celery, "beat", "--schedule", schedule, "--pidfile=", "--loglevel", "INFO"
        ),
        _process(home, "relay", env, "-m", "workers.relay"),
    ):
        lasting = Lasting(4.0)
        workers.append(
            replace(service, after=("migrate", "valkey"), prepare=lasting.forget, ready=lasting.ready)
        )
    return workers


def _process(home: Home, name: str, env: Mapping[str, str], *arguments: str) -> Service:
    """Return a Python process of this repository, not yet placed in the order."""
    return Service(
        name=name,
        command=lambda: [sys.executable, *arguments],
        log=home.log(name),
        env=env,
        cwd=REPOSITORY,
    )
