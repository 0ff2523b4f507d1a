"""Make the operator, the first tenant and its key, once, and keep what a person needs in `first-run.json`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from embedded.errors import CannotStart
from embedded.home import REPOSITORY, Home, write_private

FIELDS = ("web_url", "api_base", "api_key", "operator_email", "operator_password", "tenant")


def make(home: Home) -> dict[str, str]:
    """Run `manage.py first_run --json` with this process's environment and write the file."""
    made = _ask()
    if not (made["api_key"] and made["operator_password"]):
        # both were made earlier, and the file that held them is gone: their hashes are all that is left
        made |= {name: value for name, value in _ask("--new-key", "--new-password").items() if value}
    addresses = {"web_url": os.environ["WEB_URL"], "api_base": os.environ["API_BASE"]}
    kept = {name: str({**made, **addresses}[name]) for name in FIELDS}
    write_private(home.first_run, json.dumps(kept, indent=2) + "\n")
    return kept


def _ask(*options: str) -> dict[str, str | None]:
    command = [sys.executable, "manage.py", "first_run", "--json", *options]
    told = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=False, text=True)
    if told.returncode != 0:
        raise CannotStart(f"`manage.py first_run` ended with code {told.returncode}")
    made: dict[str, str | None] = json.loads(told.stdout.strip().splitlines()[-1])
    return made


def read(home: Home, *, web_url: str, api_base: str) -> dict[str, str]:
    """Return what the file holds, with the addresses of this start."""
    kept: dict[str, str] = json.loads(home.first_run.read_text())
    current = {**kept, "web_url": web_url, "api_base": api_base}
    if current != kept:
        write_private(home.first_run, json.dumps(current, indent=2) + "\n")
    return current


def main() -> int:
    """Make it for the home in ATTUNE_HOME."""
    try:
        make(Home.from_environment())
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
