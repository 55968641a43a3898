"""What did the experiments find? The page of results and the README's figure, from the files in experiments/results.

A section for each script: its question, the command that made its numbers, what is published, and tables. No number of ours is
typed: whoever runs an experiment anew copies its JSON into the folder and calls this, or `make page`. Scripts whose numbers are
not there are named at the end.

    python experiments/results_page.py
"""

import argparse
import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from pages import agrawal, figure, hutchinson, raiders, speed, twist, wilton
from pages.published import PUBLISHED
from script import record

HOME = Path(__file__).parent
RESULTS, PAGE = HOME / "results", HOME.parent / "notebooks" / "site" / "results.md"
Section = Callable[[dict], Iterator[str]]

# By script: what its section is made by. The files are named after the script; wilton.py leaves one for each experiment.
PARTS: dict[str, dict[str, Section]] = {
    "Twist": {
        "twist_training.py": twist.training,
        "twist_posteriors.py": twist.posteriors,
        "twist_stages.py": twist.stages,
        "twist_search.py": twist.search,
    },
    "Agrawal": {
        "agrawal_posterior.py": agrawal.posterior,
        "agrawal_gp.py": agrawal.gps,
        "agrawal_search.py": agrawal.searches,
        "high_dimensional.py": agrawal.many,
    },
    "Raiders": {
        "raiders_table1.py": raiders.table1,
        "raiders_search.py": raiders.search,
        "raiders_tables.py": raiders.tables,
        "raiders_missing.py": raiders.missing,
    },
    "Wilton": {"wilton.py": wilton.experiment},
    "Hutchinson": {
        "make_bnn_table.py": hutchinson.networks,
        "hutchinson_effects.py": hutchinson.effects,
        "hutchinson_pruning.py": hutchinson.pruning,
        "hutchinson_deterministic.py": hutchinson.deterministic,
        "hutchinson_gpar_fits.py": hutchinson.fits,
        "hutchinson_search.py": hutchinson.search,
        "curve_defaults.py": hutchinson.defaults,
    },
    "In practice": {"search_demo.py": speed.demo, "bench_practice.py": speed.practice, "bench_study.py": speed.study},
    "Speed": {
        "bench_search.py": speed.searches,
        "bench_nets.py": speed.nets,
        "bench_gp.py": speed.gps,
        "bench_hmc.py": speed.chains,
        "bench_curves.py": speed.curves,
    },
}
OPENING = """# Results

What the experiments found, beside what is published. This page is written by `make page` from the files in
`experiments/results`, which the [experiments](experiments.md) leave; what follows from the numbers
is said in [Findings](findings.md).
Commands are as recorded, without the flags that say where rivals live; times are those of the machine that ran them.
"""


def page(folder: Path) -> str:
    """The whole page, from the files of a folder."""
    lines, absent = [OPENING], []
    for part, sections in PARTS.items():
        told = []
        for script, section in sections.items():
            files = sorted(file for file in folder.glob("*.json") if re.fullmatch(rf"{Path(script).stem}(_\d+)?", file.stem))
            told += written(script, section, files) if files else []
            absent += [] if files else [script]
        lines += [f"## {part}\n", *told] if told else []
    if absent:
        names = ", ".join(f"{{script}}`{script}`" for script in absent)
        lines.append(f"## What is not here\n\nThe numbers of these scripts are not in the folder yet: {names}.\n")
    return "\n".join(lines)


def written(script: str, section: Section, files: list[Path]) -> list[str]:
    """The section of a script, its files one after the other."""
    lines = [f"### {Path(script).stem}\n", f"**{question(script)}**\n"]
    if script in PUBLISHED:
        lines.append(f"*Published:* {PUBLISHED[script]}\n")
    for file in files:
        found = json.loads(file.read_text(encoding="utf-8"))
        lines.append(f"`{recorded(file, found)}`: [{file.name}](../../experiments/results/{file.name})\n")
        lines += [f"{block}\n" for block in section(found)]
    return lines


def question(script: str) -> str:
    """The first paragraph of the docstring of a script."""
    told = ast.get_docstring(ast.parse((HOME / script).read_text(encoding="utf-8"))) or ""
    return told.split("\n\n")[0].replace("\n", " ")


def recorded(file: Path, found: dict) -> str:
    """The command that made a file, as it says itself; without one, its numbers are not shown."""
    if "command" not in found:
        raise ValueError(f"{file.name} does not say which command made it: run its script again")
    return record.command(shlex.split(found["command"])[1:])


def listed() -> dict[str, str]:
    """By script, its command in the list of experiments."""
    text = (HOME / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((\w+\.py)[^`]*)`", text, re.M)
    return {script: record.command(shlex.split(row)) for row, script in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="the folder of JSON files")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="the page to write")
    args = parser.parse_args()
    args.page.write_text(page(args.results), encoding="utf-8")
    print(f"written to {args.page}")
    file = args.page.parent / "static" / "readme.png"
    if figure.draw(args.results, file):
        print(f"written to {file}")


if __name__ == "__main__":
    main()
