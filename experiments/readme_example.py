"""Does the README's example run? This runs its first Python block, as it stands there."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def blocks() -> list[str]:
    """The Python code blocks of README.md, in order."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def main() -> None:
    first = blocks()[0]
    print(f"The example of README.md:\n\n{first}\nsays:\n", flush=True)
    exec(compile(first, str(README), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
