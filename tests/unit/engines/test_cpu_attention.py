"""What the embedded engine attends to is what SGLang's own backend does."""

from typing import Any

import pytest
import torch
from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend

pytest.importorskip("attune_cpu_engine", reason="only the environment for CPUs has it")
from attune_cpu_engine.attention import RowsOfOneMatrix
from attune_cpu_engine.plugin import activate

PLACES, LONGEST = 400, 120
SEEN = torch.tensor([50, LONGEST, 1, 33])
NEW = torch.tensor([50, 7, 1, 1])  # a whole prompt, one behind cached tokens, a first token, one more
KIND = {"scaling": 0.11, "is_cross_attn": False, "sliding_window_size": None}


class _Caches:
    def __init__(self, *, heads: int, shared: int, width: int, dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        self.keys = torch.randn(PLACES, shared, 32, dtype=dtype)
        self.values = torch.randn(PLACES, shared, width, dtype=dtype)
        self.table = torch.stack([torch.randperm(PLACES)[:LONGEST] for _ in range(6)])
        self.slots = torch.tensor([4, 0, 5, 2])
        self.query = torch.randn(int(NEW.sum()), heads, 32, dtype=dtype)
        self.grouped = heads != shared

    def extend(self, backend: TorchNativeAttnBackend, **kind: Any) -> torch.Tensor:
        output = torch.full((*self.query.shape[:2], self.values.shape[2]), 9.0, dtype=self.query.dtype)
        where = (self.keys, self.values, self.table, self.slots, SEEN, SEEN - NEW, NEW, None)
        taken = {**KIND, "enable_gqa": self.grouped, "causal": True, **kind}
        return backend._run_sdpa_forward_extend(self.query, output, *where, **taken)

    def decode(self, backend: TorchNativeAttnBackend, **kind: Any) -> torch.Tensor:
        query = self.query[: len(SEEN)]
        output = torch.full((*query.shape[:2], self.values.shape[2]), 9.0, dtype=query.dtype)
        where = (self.keys, self.values, self.table, self.slots, SEEN, None)
        taken = {**KIND, "enable_gqa": self.grouped, "causal": False, **kind}
        return backend._run_sdpa_forward_decode(query, output, *where, **taken)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "shared", "width"), [(9, 3, 32), (4, 4, 32), (8, 2, 16)])
@pytest.mark.parametrize("kind", [{}, {"sliding_window_size": 20}])
def test_it_attends_as_the_released_backend(
    heads: int, shared: int, width: int, dtype: torch.dtype, kind: dict[str, Any]
) -> None:
    caches = _Caches(heads=heads, shared=shared, width=width, dtype=dtype)
    ours, released = (kept.__new__(kept) for kept in (RowsOfOneMatrix, TorchNativeAttnBackend))
    close = {"rtol": 0.02, "atol": 0.01} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(caches.extend(ours, **kind), caches.extend(released, **kind), **close)
    torch.testing.assert_close(caches.decode(ours, **kind), caches.decode(released, **kind), **close)


def test_no_token_sees_what_comes_after_it() -> None:
    caches = _Caches(heads=9, shared=3, width=32, dtype=torch.float32)
    ours = RowsOfOneMatrix.__new__(RowsOfOneMatrix)
    before = caches.extend(ours)
    last = caches.table[caches.slots[1], LONGEST - 1]
    caches.keys[last] += 1.0
    caches.values[last] += 1.0
    first, end = int(NEW[0]), int(NEW[:2].sum())
    after = caches.extend(ours)
    assert torch.equal(after[first : end - 1], before[first : end - 1])
    assert not torch.equal(after[end - 1], before[end - 1])


def test_the_plugin_puts_it_in_the_place_of_the_released_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTENTION_BACKENDS, "torch_native", None)
    for name in ("pin_memory", "is_pinned"):
        monkeypatch.setattr(torch.Tensor, name, getattr(torch.Tensor, name))
    monkeypatch.setattr("attune_cpu_engine.plugin.FACTORIES", ())

    class _Runner:
        device = "cpu"
        req_to_token_pool = token_to_kv_pool = None

    activate()
    assert isinstance(ATTENTION_BACKENDS["torch_native"](_Runner()), RowsOfOneMatrix)
