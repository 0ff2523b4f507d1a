"""The adapter store: paths stay inside, and only what no version names is thrown away."""

import os
import time
import uuid
from pathlib import Path

import pytest

from apps.adapters import store as adapter_store
from apps.adapters.models import AdapterVersion, Policy
from apps.adapters.store import StoreError
from tests.apps.adapters.conftest import MakeVersion


@pytest.mark.parametrize("path", ["", ".", "..", "a/../../b", "/etc", "a/b/../../..", "../adapters-evil/x"])
def test_paths_stay_in_the_store(store: Path, path: str) -> None:
    with pytest.raises(StoreError):
        adapter_store.absolute(path)


def test_a_link_out_of_the_store_is_not_followed(store: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (store / "inside").symlink_to(tmp_path / "outside")

    with pytest.raises(StoreError):
        adapter_store.absolute("inside/x")
    assert adapter_store.absolute("other/x") == (store / "other/x").resolve()


def age(directory: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in (*directory.iterdir(), directory):
        os.utime(path, (then, then))


def test_garbage_is_what_no_version_names_for_long(
    store: Path, policy: Policy, make_version: MakeVersion
) -> None:
    version = make_version()
    kept = store / version.path
    age(kept, 7 * 86400)
    home = kept.parent
    names = ("9-dead-1", ".9-dead-1.tmp-4711", "8-fresh-1", "7-touched-1")
    for name in names:
        (home / name).mkdir()
        (home / name / "adapter_model.safetensors").write_bytes(b"x")
        age(home / name, 2 * 86400)
    age(home / "8-fresh-1", 60)
    (home / "7-touched-1" / "adapter_model.safetensors").write_bytes(b"still being written")

    deleted = adapter_store.collect_garbage()

    assert sorted(Path(path).name for path in deleted) == [".9-dead-1.tmp-4711", "9-dead-1"]
    assert sorted(path.name for path in home.iterdir()) == sorted([kept.name, "8-fresh-1", "7-touched-1"])
    assert (kept / "adapter_model.safetensors").exists()
    assert AdapterVersion.objects.count() == 1


def test_other_tenants_files_are_no_garbage(store: Path, policy: Policy, make_version: MakeVersion) -> None:
    version = make_version()
    age(store / version.path, 7 * 86400)
    from kernel.tenancy import tenant_scope

    with tenant_scope(uuid.uuid4()):
        assert adapter_store.collect_garbage() == []
    assert (store / version.path / "adapter_config.json").exists()
