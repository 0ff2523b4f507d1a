"""An adapter version as files: written aside, fsynced, renamed; read back only where every hash holds."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from trainer.contracts import Artefact, LoraSpec, Probe
from trainer.errors import StepFailedError
from trainer.lora.layout import Tensors

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
OPTIMIZER = "optimizer.state"
"""In the safetensors format, but not by name:
SGLang reads every *.safetensors of a directory as adapter weights."""
MANIFEST = "manifest.json"
TEMPORARY = ".tmp-"
"""A directory being written is `.<final name>.tmp-<process id>`:
whoever collects garbage knows it by this."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What a step starts from."""

    weights: Tensors
    optimizer: Tensors | None
    spec: LoraSpec
    step: int
    hash: str


def version_hash(weights: bytes, config: bytes) -> str:
    """SHA-256 of adapter_model.safetensors followed by adapter_config.json."""
    return _digests(weights, config)[0]


def _digests(weights: bytes, config: bytes) -> tuple[str, str]:
    """The version's hash and the weights' own; they are read once for both."""
    digest = hashlib.sha256(weights)
    whole = digest.copy()
    whole.update(config)
    return whole.hexdigest(), digest.hexdigest()


def read_parent(directory: Path, expected: str | None) -> Parent:
    """Reads an artefact, or a plain PEFT directory without a manifest (then step 0 and a fresh optimiser).

    Raises `StepFailedError("bad_parent")` where a file is missing or is not what its hash says.
    """
    try:
        weights, config = (directory / WEIGHTS).read_bytes(), (directory / CONFIG).read_bytes()
        found, own = _digests(weights, config)
        manifest: dict[str, Any] = {}
        optimizer = None
        if (directory / MANIFEST).exists():
            manifest = json.loads((directory / MANIFEST).read_bytes())
            for name, digest in manifest["files"].items():
                data = weights if name == WEIGHTS else (directory / name).read_bytes()
                if (own if name == WEIGHTS else hashlib.sha256(data).hexdigest()) != digest:
                    raise StepFailedError("bad_parent", f"{directory / name} is not what its manifest says")
                if name == OPTIMIZER:
                    optimizer = load_tensors(data)
        if expected is not None and found != expected:
            raise StepFailedError("bad_parent", f"{directory} holds version {found[:8]}, not {expected[:8]}")
        peft = json.loads(config)
        return Parent(
            weights=load_tensors(weights),
            optimizer=optimizer,
            spec=LoraSpec(rank=peft["r"], alpha=float(peft["lora_alpha"])),
            step=int(manifest.get("step", 0)),
            hash=found,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepFailedError("bad_parent", f"{directory}: {type(error).__name__}: {error}") from error


def check_target(directory: Path, need: int) -> None:
    """Raises `StepFailedError` where the artefact could not be written:
    already there, or `need` bytes are not free."""
    _refuse_existing(directory)
    with _disk_errors():
        directory.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(directory.parent).free
    if free < need:
        raise StepFailedError("no_space", f"no space: {need >> 20} MiB are needed, {free >> 20} MiB are free")


def write_artefact(
    directory: Path,
    *,
    weights: Tensors,
    optimizer: Tensors,
    config: Mapping[str, Any],
    step: int,
    parent_hash: str | None,
    probe: tuple[Probe, ...],
    about: Mapping[str, Any],
) -> Artefact:
    """Writes everything, or nothing: raises `StepFailedError` (no_space, io_error) with nothing left behind.

    `about` goes into the manifest as it is. The same arguments give the same bytes.
    """
    weight_bytes = save_tensors(weights, metadata={"format": "pt"})
    config_bytes = _json(config)
    contents = {WEIGHTS: weight_bytes, CONFIG: config_bytes, OPTIMIZER: save_tensors(optimizer)}
    digest, own = _digests(weight_bytes, config_bytes)
    hashes = {
        name: own if name == WEIGHTS else hashlib.sha256(data).hexdigest() for name, data in contents.items()
    }
    contents[MANIFEST] = _json(
        {
            "format": 1,
            "hash": digest,
            "parent_hash": parent_hash,
            "step": step,
            "files": hashes,
            "rank": config["r"],
            "alpha": config["lora_alpha"],
            "target_modules": config["target_modules"],
            "base_model": config["base_model_name_or_path"],
            "probe": [one.to_json() for one in probe],
            **about,
        }
    )
    with _disk_errors():
        _publish(directory, contents)
    return Artefact(
        dir=str(directory),
        hash=digest,
        files=hashes,
        bytes=sum(len(data) for data in contents.values()),
        step=step,
        parent_hash=parent_hash,
        probe=probe,
    )


def export_plain(source: Path, directory: Path) -> None:
    """A version's weights and configuration alone, as PEFT reads them, written as whole as a version is."""
    with _disk_errors():
        _publish(directory, {name: (source / name).read_bytes() for name in (WEIGHTS, CONFIG)})


def _publish(directory: Path, contents: Mapping[str, bytes]) -> None:
    aside = directory.parent / f".{directory.name}{TEMPORARY}{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        for name, data in contents.items():
            with (aside / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        _fsync_directory(aside)
        _refuse_existing(directory)
        aside.rename(directory)
        _fsync_directory(directory.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _refuse_existing(directory: Path) -> None:
    # rename() would quietly replace an empty directory, and a version is never replaced
    if directory.exists():
        raise StepFailedError("out_dir_exists", f"{directory} exists already")


def _fsync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StepFailedError("no_space", f"no space: {error}") from error
        raise StepFailedError("io_error", str(error)) from error
