"""The parts that a deployment brings along: database, cache, model, engine.

Each is embedded unless a variable names another.

A part says what the processes need to know of it (`env`) and what must run for it (`services`, possibly
none).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embedded import model
from embedded.database import Login, bootstrap, bootstrap_for
from embedded.engine import BATCH_SLOTS, LOADED_SLOTS, Engine, fast_dtype, has_nvidia_gpu
from embedded.home import REPOSITORY, Home, free_port
from embedded.postgres import Postgres
from embedded.service import Service
from embedded.valkey import Valkey

DATABASE = "attune"
LOGIN = "attune_login"
ANYWHERE = Path("/")


@dataclass(frozen=True, slots=True)
class Part:
    """One part. `env` goes to every process of this repository."""

    env: Mapping[str, str]
    services: tuple[Service, ...] = ()


@dataclass(frozen=True, slots=True)
class Database(Part):
    """The database. `owner_url` is for migrations; `bootstrap` makes database and roles before them."""

    owner_url: str = field(kw_only=True)
    bootstrap: Callable[[], None] = field(kw_only=True)


def database(home: Home, secrets: Mapping[str, str]) -> Database:
    """Embedded Postgres, or DATABASE_URL.

    A DATABASE_OWNER_URL beside it is used for bootstrap and migrations only.
    """
    given = os.environ.get("DATABASE_URL")
    if given:
        owner = os.environ.get("DATABASE_OWNER_URL") or given

        def prepare() -> None:
            bootstrap_for(owner, given)

        return Database({"DATABASE_URL": given}, owner_url=owner, bootstrap=prepare)
    server = Postgres(home.postgres, secrets["postgres_password"])
    login = Login(LOGIN, secrets["login_password"])
    owner = server.url(database=DATABASE)

    def prepare_embedded() -> None:
        bootstrap(owner, login=login)

    return Database(
        {"DATABASE_URL": server.url(user=login.name, password=login.password, database=DATABASE)},
        (
            Service(
                name="postgres",
                command=server.command,
                log=home.log("postgres"),
                env=_plain(),
                cwd=ANYWHERE,
                prepare=server.prepare,
                ready=server.ready,
                run_as=lambda: server.run_as,
                stop_signal=signal.SIGINT,  # disconnects its clients
                last=True,
                clean_up=server.forget_sockets,
            ),
        ),
        owner_url=owner,
        bootstrap=prepare_embedded,
    )


def cache(home: Home, secrets: Mapping[str, str]) -> Part:
    """Embedded Valkey, or REDIS_URL."""
    given = os.environ.get("REDIS_URL")
    if given:
        return Part({"REDIS_URL": given})
    server = Valkey(home.valkey, free_port(), secrets["valkey_password"])
    return Part(
        {"REDIS_URL": server.url},
        (
            Service(
                name="valkey",
                command=server.command,
                log=home.log("valkey"),
                env=_plain(),
                cwd=server.folder,
                prepare=server.prepare,
                ready=server.ready,
                last=True,
            ),
        ),
    )


def _trainer() -> dict[str, str]:
    """Return what suits this machine's trainer, unless told otherwise.

    On a CPU larger micro-batches are no faster and take gigabytes.
    """
    return {
        "TRAINER_DTYPE": os.environ.get("TRAINER_DTYPE") or fast_dtype(),
        "TRAINER_TOKEN_BUDGET": os.environ.get("TRAINER_TOKEN_BUDGET")
        or ("4096" if has_nvidia_gpu() else "1024"),
    }


def small_model(home: Home) -> Part:
    """The small chat model, converted once, or MODEL_PATH (and TRAINER_MODEL_PATH)."""
    given = os.environ.get("MODEL_PATH")
    if given:
        path = Path(given).expanduser().absolute()
        name = os.environ.get("BASE_MODEL_NAME") or path.name
        trainer = os.environ.get("TRAINER_MODEL_PATH") or str(path)
        return Part(
            {
                "MODEL_PATH": str(path),
                "TRAINER_MODEL_PATH": trainer,
                "BASE_MODEL_NAME": name,
                **_trainer(),
            }
        )
    env = {
        "MODEL_PATH": str(model.directory(home, "bfloat16")),
        "TRAINER_MODEL_PATH": str(model.directory(home, "float32")),
        "BASE_MODEL_NAME": model.NAME,
        **_trainer(),
    }
    if model.is_converted(home):
        return Part(env)
    command = [sys.executable, "-m", "embedded.model", str(home.path)]
    return Part(
        env,
        (
            Service(
                name="model",
                command=lambda: command,
                log=home.log("model"),
                env=_plain(),
                cwd=REPOSITORY,
                once=True,
                start_within_s=900.0,
                said_at_start="converting the small chat model, once (about half a minute)",
            ),
        ),
    )


def engine(home: Home, secrets: Mapping[str, str], served: Part) -> Part:
    """A SGLang server for `served`, or ENGINE_URLS (with ENGINE_API_KEY and ENGINE_ADMIN_KEY)."""
    keys = {
        "ENGINE_API_KEY": os.environ.get("ENGINE_API_KEY") or secrets["engine_api_key"],
        "ENGINE_ADMIN_KEY": os.environ.get("ENGINE_ADMIN_KEY") or secrets["engine_admin_key"],
    }
    given = os.environ.get("ENGINE_URLS")
    if given:
        named = {name: os.environ[name] for name in keys if name in os.environ}
        return Part({"ENGINE_URLS": given, **named})
    gpu = has_nvidia_gpu()
    server = Engine(
        model=Path(served.env["MODEL_PATH"]),
        port=free_port(),
        api_key=keys["ENGINE_API_KEY"],
        admin_key=keys["ENGINE_ADMIN_KEY"],
        device="cuda" if gpu else "cpu",
        dtype=os.environ.get("ENGINE_DTYPE") or fast_dtype(),
        max_rank=int(os.environ.get("LORA_RANK") or 16),
        batch_slots=BATCH_SLOTS[gpu],
        loaded_slots=LOADED_SLOTS[gpu],
    )
    config = home.run / "engine.yaml"
    restart = os.environ.get("ENGINE_RESTART_COMMAND") or f"{sys.executable} -m embedded.recycle"
    return Part(
        {"ENGINE_URLS": server.url, "ENGINE_RESTART_COMMAND": restart, **keys},
        (
            Service(
                name="engine",
                command=lambda: server.command(config),
                log=home.log("engine"),
                env=server.environment(_plain()),
                cwd=ANYWHERE,
                after=("model",),
                ready=server.ready,
                start_within_s=900.0 if gpu else 300.0,
                said_at_start=f"loading SGLang on the {'GPU' if gpu else 'CPU'} (about half a minute)",
                said_when_ready=server.url,
            ),
        ),
    )


def _plain() -> dict[str, str]:
    """Return this process's environment for programs that need none of ours."""
    return dict(os.environ)
