"""The embedded default: one machine, everything under ATTUNE_HOME, loopback only."""

from config.settings.base import *  # noqa: F403
