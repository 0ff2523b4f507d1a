"""Every adapter that would kill an engine or be computed wrongly stops here, with the numbers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings
from safetensors.numpy import save_file

from apps.adapters.preflight import PreflightRefused, preflight
from apps.adapters.store import StoreError
from tests.apps.adapters.files import RANK, Arrays, configuration, hash_of, tensors, write_adapter, write_base

Q = "base_model.model.model.layers.1.self_attn.q_proj"


@pytest.fixture
def base(tmp_path: Path, settings: Settings) -> Path:
    settings.MODEL_PATH = write_base(tmp_path / "base")
    settings.LORA_RANK = RANK
    return tmp_path / "base"


def test_what_the_trainer_writes_passes(tmp_path: Path, base: Path) -> None:
    sha256 = write_adapter(tmp_path / "a", base)

    checked = preflight(tmp_path / "a", sha256=sha256)

    assert (checked.rank, checked.alpha, checked.layers) == (4, 8.0, 2)
    assert checked.parameters == sum(array.size for array in tensors(base).values())


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_other_precisions_pass(tmp_path: Path, base: Path, dtype: Any) -> None:
    def to(arrays: Arrays) -> None:
        arrays.update({name: array.astype(dtype) for name, array in arrays.items()})

    preflight(tmp_path / "a", sha256=write_adapter(tmp_path / "a", base, change=to))


@pytest.mark.parametrize(
    ("bits", "passes"), [(0x3F80, True), (0x7F7F, True), (0x7FC0, False), (0xFF80, False)]
)
def test_bfloat16_is_read_without_a_library_for_it(
    tmp_path: Path, base: Path, bits: int, passes: bool
) -> None:
    # 1.0, the largest, NaN, -infinity
    write_adapter(tmp_path / "a", base)
    path = tmp_path / "a" / "adapter_model.safetensors"
    halves = {name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in tensors(base).items()}
    halves[f"{Q}.lora_B.weight"][3, 1] = bits
    header, body = {}, b""
    for name, array in halves.items():
        entry = {
            "dtype": "BF16",
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + array.nbytes],
        }
        header[name], body = entry, body + array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)

    if passes:
        preflight(tmp_path / "a", sha256=hash_of(tmp_path / "a"))
    else:
        with pytest.raises(PreflightRefused, match="NaN or infinite"):
            preflight(tmp_path / "a", sha256=hash_of(tmp_path / "a"))


def drop(*words: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        for name in [name for name in arrays if any(word in name for word in words)]:
            del arrays[name]

    return change


def put(name: str, array: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: np.asarray(array, dtype=np.float32)})


def rename(old: str, new: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        for name in list(arrays):
            arrays[name.replace(old, new)] = arrays.pop(name)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (drop("q_proj", "v_proj"), "layer 0 q_proj lacks lora_A and lora_B"),
        (drop("layers.1.self_attn.k_proj.lora_B"), "layer 1 k_proj lacks lora_B"),
        (put(f"{Q}.lora_A.weight", np.ones((RANK, 7))), r"shape \[4, 7\], expected \[4, 8\]"),
        (put(f"{Q}.lora_A.weight", np.ones((8, 8))), r"shape \[8, 8\], expected \[4, 8\]"),
        (put(f"{Q}.lora_B.weight", np.full((8, RANK), np.nan)), "NaN or infinite"),
        (put(f"{Q}.lora_A.weight", np.full((RANK, 8), np.inf)), "NaN or infinite"),
        (rename("self_attn", "attention"), "binds to nothing"),
        (rename("base_model.model.model.", "base_model.model.transformer."), "binds to nothing"),
        (
            put("base_model.model.lm_head.lora_A.weight", np.ones((RANK, 8))),
            "lm_head.lora_A.weight binds to nothing",
        ),
        (
            put("base_model.model.model.embed_tokens.lora_embedding_A", np.ones((RANK, 64))),
            "binds to nothing",
        ),
        (put(Q.replace("layers.1", "layers.2") + ".lora_A.weight", np.ones((RANK, 8))), "no such module"),
        (put(Q.replace("self_attn", "mlp") + ".lora_A.weight", np.ones((RANK, 8))), "no such module"),
        (put(f"{Q}.lora_magnitude_vector", np.ones(8)), "binds to nothing"),
        (lambda arrays: arrays.update({f"{Q}.lora_A.weight": np.ones((RANK, 8))}), "of type F64"),
    ],
)
def test_matrices_that_engines_trip_over_are_refused(
    tmp_path: Path, base: Path, change: Callable[[Arrays], None], why: str
) -> None:
    sha256 = write_adapter(tmp_path / "a", base, change=change)

    with pytest.raises(PreflightRefused, match=why):
        preflight(tmp_path / "a", sha256=sha256)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"use_rslora": True}, "use_rslora is set"),
        ({"use_dora": True}, "use_dora is set"),
        ({"rank_pattern": {"q_proj": 8}}, "rank_pattern is {'q_proj': 8}"),
        ({"alpha_pattern": {"q_proj": 8}}, "alpha_pattern"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias is 'all'"),
        ({"peft_type": "LOHA"}, "peft_type is 'LOHA'"),
        ({"r": 8}, "rank 8 is not between 1 and the engines' 4"),
        ({"r": 0}, "rank 0"),
        ({"r": "4"}, "rank 4"),
        ({"lora_alpha": 0}, "lora_alpha is 0"),
        ({"lora_alpha": None}, "lora_alpha is None"),
        ({"target_modules": ["k_proj", "o_proj"]}, r"target_modules are \['k_proj', 'o_proj'\]"),
        ({"target_modules": [*configuration()["target_modules"], "lm_head"]}, "lm_head"),
        ({"target_modules": "all-linear"}, "all-linear"),
    ],
)
def test_options_that_engines_compute_in_another_way_are_refused(
    tmp_path: Path, base: Path, changed: dict[str, Any], why: str
) -> None:
    sha256 = write_adapter(tmp_path / "a", base, config=configuration(**changed))

    with pytest.raises(PreflightRefused, match=why):
        preflight(tmp_path / "a", sha256=sha256)


def test_the_hash_decides(tmp_path: Path, base: Path) -> None:
    sha256 = write_adapter(tmp_path / "a", base)
    path = tmp_path / "a" / "adapter_config.json"
    path.write_text(path.read_text().replace("8", "9", 1))

    with pytest.raises(PreflightRefused, match=f"the version says {sha256[:16]}"):
        preflight(tmp_path / "a", sha256=sha256)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda path: path.unlink(), StoreError),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), PreflightRefused),
        (lambda path: path.write_bytes(b"\xff" * 200), PreflightRefused),
        (lambda path: path.write_bytes(b""), PreflightRefused),
        (lambda path: path.write_bytes((10).to_bytes(8, "little") + b"{not json}"), PreflightRefused),
    ],
)
def test_broken_files_are_refused(
    tmp_path: Path, base: Path, spoil: Callable[[Path], None], kind: type[Exception]
) -> None:
    write_adapter(tmp_path / "a", base)
    path = tmp_path / "a" / "adapter_model.safetensors"
    spoil(path)
    sha256 = hash_of(tmp_path / "a") if path.exists() else "0" * 64

    with pytest.raises(kind):
        preflight(tmp_path / "a", sha256=sha256)


def test_the_safetensors_library_agrees_with_the_reader(tmp_path: Path, base: Path) -> None:
    from apps.adapters.preflight import read_safetensors

    arrays = tensors(base, seed=3)
    save_file(arrays, tmp_path / "x.safetensors")

    found = read_safetensors(tmp_path / "x.safetensors")

    assert {name: tensor.shape for name, tensor in found.items()} == {n: a.shape for n, a in arrays.items()}
    for name, tensor in found.items():
        np.testing.assert_array_equal(tensor.data.view(np.float32).reshape(tensor.shape), arrays[name])


@pytest.mark.parametrize("name", ["optimizer.safetensors", "training.bin", "more.pt"])
def test_a_file_that_the_engine_would_read_as_weights_is_refused(
    tmp_path: Path, base: Path, name: str
) -> None:
    sha256 = write_adapter(tmp_path / "a", base)
    (tmp_path / "a" / name).write_bytes(b"anything")

    with pytest.raises(PreflightRefused, match=f"{name} would be read as weights"):
        preflight(tmp_path / "a", sha256=sha256)


def test_the_optimiser_state_beside_the_weights_passes(tmp_path: Path, base: Path) -> None:
    sha256 = write_adapter(tmp_path / "a", base)
    (tmp_path / "a" / "optimizer.state").write_bytes(b"anything")

    preflight(tmp_path / "a", sha256=sha256)
