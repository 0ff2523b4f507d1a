"""Three minutes of kill -9 on everything: Postgres, Valkey, relays, workers, beat, trainers.

Nothing is lost or done twice.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from embedded import processes
from embedded.database import bootstrap
from embedded.home import free_port
from embedded.throwaway import Servers
from tests.apps.workers.trainers import FAKE
from tests.chat_model import build_chat_model

STORM_S = 180.0
TURNS, AT_ONCE = 240, 10
BATCH = 8
RELAYS, JUDGES, TRAINERS = 2, 4, 2


class Storm:
    """Servers and processes that are started again by name after they were killed."""

    def __init__(self, folder: Path, chat_model: Path) -> None:
        self.servers = Servers(folder / "s", free_port(), "secret")
        self.servers.folder.mkdir()
        self.log = (folder / "storm.log").open("ab")
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._postgres, self._valkey = self.servers.postgres, self.servers.valkey
        self.start("postgres")
        self.start("valkey")
        url = bootstrap(self.servers.database_url("attune"), login=self.servers.login())
        control = folder / "control.json"
        # longer than it takes to ask how things stand on a busy machine: who sees a step kills its trainer in it
        control.write_text('{"mode": "made", "seconds": 8}')
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            "PYTHONPATH": f"{django_settings.BASE_DIR}{os.pathsep}{django_settings.BASE_DIR / 'platform'}",
            "SECRET_KEY": "storm",
            "DATABASE_URL": url,
            "REDIS_URL": self.servers.redis_url(),
            "ATTUNE_HOME": str(folder / "home"),
            "ADAPTER_STORE": str(folder / "adapters"),
            "MODEL_PATH": str(chat_model),
            "ENGINE_URLS": "",
            "TRAINING_BATCH": str(BATCH),
            "TRAINING_FLUSH_S": "20",
            "TRAINING_MAX_STALENESS": "1000",
            "LEASE_S": "4",
            "FAKE_TRAINER": f"{FAKE}\n{control}",
        }
        owner = {"DATABASE_URL": self.servers.database_url("attune"), "DATABASE_ROLE": "attune_owner"}
        manage = [sys.executable, str(django_settings.BASE_DIR / "manage.py"), "migrate", "-v0"]
        subprocess.run(manage, env=self.environment | owner, check=True)
        app = ("celery", "-A", "tests.apps.workers.fake_app")
        quiet = ("--without-gossip", "--without-mingle")
        self.modules: dict[str, tuple[str, ...]] = {
            "beat": (*app, "beat", "--schedule", str(folder / "beat"), "--pidfile="),
            "ops": (*app, "worker", *quiet, "-Q", "ops", "-c", "2", "-n", "ops@storm"),
        }
        self.modules |= {f"relay{number}": ("workers.relay",) for number in range(RELAYS)}
        for queue, slots, count in (("judge", "2", JUDGES), ("train", "1", TRAINERS)):
            for number in range(count):
                name = f"{queue}{number}"
                self.modules[name] = (
                    *(*app, "worker", *quiet, "-Q", queue),
                    *("-c", slots, "-n", f"{name}@storm"),
                )
        for name in self.modules:
            self.start(name)

    def start(self, name: str) -> None:
        if name == "postgres":
            self.running[name] = self._postgres.start(output=self.log)
        elif name == "valkey":
            self.running[name] = self._valkey.start(output=self.log)
        else:
            command = [sys.executable, "-m", *self.modules[name]]
            self.running[name] = subprocess.Popen(
                command, env=self.environment, stdout=self.log, stderr=self.log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGKILL)
        processes.collect(self.running[name])

    def drive(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "tests.chaos.storm_driver", *arguments]
        done = subprocess.run(
            command, check=False, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def stop(self) -> None:
        for name in sorted(self.running, key=lambda name: name in ("postgres", "valkey")):
            self.kill(name)
        self.log.close()


def _until(true: Callable[[], bool], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(2.0)
    return True


@pytest.fixture
def chat_model(tmp_path: Path) -> Path:
    return build_chat_model(tmp_path / "model")


@pytest.mark.long
def test_two_relays_four_judges_and_two_trainers_on_one_ledger_under_random_kills(
    tmp_path: Path, chat_model: Path
) -> None:
    chance = random.Random(7)
    storm = Storm(tmp_path, chat_model)
    try:
        filled = 0
        kills: Counter[str] = Counter()
        end = time.monotonic() + STORM_S
        while time.monotonic() < end or filled < TURNS:
            if filled < TURNS:
                storm.drive("fill", str(filled), str(AT_ONCE))
                filled += AT_ONCE
            if '"running"' in storm.drive("state") and chance.random() < 0.3:
                for number in range(TRAINERS):
                    storm.kill(f"train{number}")
                    storm.start(f"train{number}")
            name = chance.choice([*storm.modules, "postgres", "valkey", "valkey"])
            storm.kill(name)
            kills[name.rstrip("0123456789")] += 1
            time.sleep(chance.uniform(0.0, 1.5))
            storm.start(name)

        state: dict[str, object] = {}

        def settled() -> bool:
            nonlocal state
            state = json.loads(storm.drive("state"))
            samples = state["samples"]
            assert isinstance(samples, dict)
            return sum(samples.values()) == TURNS and not {"ready", "claimed"} & set(samples)

        calm = _until(settled, 300.0)
        print(json.dumps({"kills": dict(kills), **state}, indent=1))
        assert calm, (state, (tmp_path / "storm.log").read_text(errors="replace")[-6000:])
        samples, reasons = state["samples"], state["reasons"]
        assert isinstance(samples, dict)
        assert isinstance(reasons, dict)
        # every turn: trained once, or with a reason
        consumed, left_out = samples.pop("consumed"), sum(samples.values())
        assert state["turns"] == TURNS == consumed + left_out
        assert set(samples) <= {"ineligible", "dropped"}
        assert sum(reasons.values()) == left_out
        assert "" not in reasons
        assert reasons["aborted"] == TURNS // 10
        assert consumed >= TURNS // 2
        assert (state["taught"], state["taught_once"]) == (consumed, consumed)
        assert state["versions_hold_what_they_consumed"] is True
        assert state["seconds_of_tenants"] == pytest.approx(state["seconds_of_runs"])
        assert state["fence"] != 1, "no trainer was killed while it worked"
    finally:
        storm.stop()
