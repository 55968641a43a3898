"""What is known of bench_search.py: one file of JSON lines a part, added to as runs end, so that nothing is lost."""

import json
from pathlib import Path


def known(config, out: Path, part: str) -> list[dict]:
    """The rows of a part that belong to this configuration; a line cut short by a kill is not one."""
    file, rows = out / f"{part}.jsonl", []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return [row for row in rows if belongs(config, row)]


def belongs(config, row: dict) -> bool:
    """Whether a row was made with this budget, these seeds and these sizes, as far as it depends on them."""
    same = all(row.get(name, value) == value for name, value in (("evaluations", config.evaluations), ("seeds", config.seeds)))
    return same and row.get("seed", 0) < config.seeds and row.get("n", config.sizes[0]) in config.sizes


def save(out: Path, part: str, row: dict) -> None:
    with (out / f"{part}.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row, allow_nan=False))  # a newline first: the line before may have been cut short


def missing(config, out: Path, part: str, function: str, seeds: list[int]) -> list[int]:
    """The seeds that a contender has not run yet on a function."""
    done = {row["seed"] for row in known(config, out, part) if row["function"] == function}
    return [seed for seed in seeds if seed not in done]
