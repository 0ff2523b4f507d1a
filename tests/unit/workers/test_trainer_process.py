"""How the trainer's child is started: its command line and what it may know."""

import sys

import pytest
from pytest_django import Settings

from workers.trainer_command import trainer_command, trainer_environment


def test_one_rank_is_the_trainer_itself(settings: Settings) -> None:
    settings.TRAINER_MODEL_PATH, settings.TRAINER_DEVICE, settings.TRAINER_RANKS = "/models/a b", "cpu", 1
    command = trainer_command()
    assert command[:4] == [sys.executable, "-m", "trainer", "serve"]
    assert command[command.index("--model") + 1] == "/models/a b"
    assert command[command.index("--device") + 1] == "cpu"


def test_several_ranks_run_under_torchrun_each_on_a_leash(settings: Settings) -> None:
    settings.TRAINER_RANKS = 2
    command = trainer_command()
    assert command[1:3] == ["-m", "torch.distributed.run"]
    assert command[command.index("--nproc-per-node") + 1] == "2"
    assert command[command.index("--tensor-parallel") + 1] == "0"
    leash = command.index("workers.leash")
    assert command[leash + 1 : leash + 6] == ["0", "--", sys.executable, "-m", "trainer"]


def test_ranks_are_divided_into_replicas_as_the_setting_says(settings: Settings) -> None:
    settings.TRAINER_RANKS, settings.TRAINER_TENSOR_PARALLEL = 8, 4
    command = trainer_command()
    assert command[command.index("--nproc-per-node") + 1] == "8"
    assert command[command.index("--tensor-parallel") + 1] == "4"


@pytest.mark.parametrize(
    "secret",
    [
        "DATABASE_URL",
        "REDIS_URL",
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
        "DATABASE_OWNER_URL",
        "EMAIL_URL",
        "https_proxy",
        "PGPASSWORD",
        "ENGINE_ADMIN_KEY",
        "JUDGE_API_KEY",
        "SMTP_PASSWORD",
        "HF_TOKEN",
    ],
)
def test_the_child_knows_no_secret(secret: str) -> None:
    environment = trainer_environment({secret: "hush", "HOME": "/home/a"})
    assert secret not in environment
    assert environment["HOME"] == "/home/a"
    assert "hush" not in "".join(environment.values())


def test_the_child_uses_the_threads_it_was_given_and_no_network(settings: Settings) -> None:
    settings.TRAINER_THREADS = 3
    environment = trainer_environment({"OMP_NUM_THREADS": "64"})
    assert (environment["OMP_NUM_THREADS"], environment["HF_HUB_OFFLINE"]) == ("3", "1")
