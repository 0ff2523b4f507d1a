"""The embedded default: one machine, everything under ATTUNE_HOME, loopback only."""

from pathlib import Path

from config import env

# what `make up` runs with, so that a command started by hand talks to the same database
env.adopt(env.path("ATTUNE_HOME", Path(__file__).resolve().parents[3] / "var") / "environment.json")

from config.settings.base import *  # noqa: E402, F403

# where `make up` keeps what a person needs to begin; `first_run` keeps it true
FIRST_RUN_FILE = ATTUNE_HOME / "first-run.json"  # noqa: F405
