"""What the processor is good at, read from what Linux says of it."""

import os
from pathlib import Path

import pytest

from embedded.engine import fast_dtype
from kernel import machine

MILAN = "processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t\t: fpu sse2 avx2 bmi2\n"
GENOA = "processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t\t: fpu avx2 avx512f avx512_bf16\n"
SAPPHIRE_RAPIDS = "processor\t: 0\nmodel name\t: Intel Xeon 8481C\nflags\t\t: avx512f amx_tile amx_bf16\n"
GRAVITON_2 = "processor\t: 0\nFeatures\t: fp asimd fphp\n"
GRAVITON_3 = "processor\t: 0\nFeatures\t: fp asimd sve i8mm bf16\n"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTUNE_DEVICE", "cpu")


@pytest.mark.parametrize(
    ("says", "has"),
    [
        (MILAN, False),
        (GENOA, True),
        (SAPPHIRE_RAPIDS, True),
        (GRAVITON_2, False),
        (GRAVITON_3, True),
        ("", False),
    ],
)
def test_a_model_is_computed_in_what_the_processor_multiplies_itself(
    says: str, *, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(says and f"{says}\n{says}")
    monkeypatch.setattr(machine, "_CPUINFO", path)
    assert machine.has_bfloat16() is has
    assert fast_dtype() == ("bfloat16" if has else "float32")


def test_a_gpu_computes_in_bfloat16_whatever_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "none")
    monkeypatch.setenv("ATTUNE_DEVICE", "cuda")
    assert fast_dtype() == "bfloat16"


def test_a_machine_is_described_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"{MILAN}\n{MILAN}")
    monkeypatch.setattr(machine, "_CPUINFO", path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    said = machine.describe()
    assert said.startswith("1 of 2 cores, AMD EPYC 7763 without bfloat16, ")
    assert "\n" not in said


def test_where_nothing_is_said_the_architecture_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "none")
    assert machine.processor() in machine.describe()
    assert machine.processor()
