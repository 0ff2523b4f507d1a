"""The embedded default: one machine, everything under ATTUNE_HOME, loopback only."""

from pathlib import Path

from config import env

# what `make up` runs with, so that a command started by hand talks to the same database
env.adopt(env.path("ATTUNE_HOME", Path(__file__).resolve().parents[3] / "var") / "environment.json")

from config.settings.base import *  # noqa: E402, F403
