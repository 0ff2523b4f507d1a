"""Write the typed Python client of /api: `python deploy/client/generate.py [FOLDER]`, the folder beside this file by default.

Everything in `attune_client` comes from `docs/openapi.json`: change a view, never the client.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DESCRIPTION = HERE.parents[1] / "docs" / "openapi.json"


def generate(folder: Path) -> None:
    """Replace the package in `folder` by one made from the description."""
    beside = Path(sys.executable).parent  # the generator calls ruff by name
    subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--path", str(DESCRIPTION)),
            *("--meta", "none", "--config", str(HERE / "generator.yaml"), "--output-path", str(folder)),
            *("--overwrite", "--fail-on-warning"),
        ],
        env=os.environ | {"PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"},
        check=True,
    )


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "attune_client")
