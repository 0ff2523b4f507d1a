"""`make bench` without a name: say which benchmarks there are."""

import ast
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Print each benchmark's name and the first line of what it measures."""
    print("make bench BENCH=name, where name is one of")
    for module in sorted(HERE.glob("*.py")):
        if module.stem in {"__init__", "list"} or module.stem.startswith("_"):
            continue
        said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
        print(f"  {module.stem:20} {said.splitlines()[0] if said else ''}")


if __name__ == "__main__":
    main()
