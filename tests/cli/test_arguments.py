"""The arguments of the `bonas` command: help, mistakes and Ctrl-C."""

import subprocess
import sys
import time

import numpy as np
import pytest
from cli.command import houses

from bonas.cli import arguments, commands
from bonas.problems.datasets import SKLEARN_SETS
from bonas.tabular import FAMILIES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table in it."""
    monkeypatch.chdir(tmp_path)
    houses(tmp_path / "houses.csv")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["search", "--help"], ["predict", "--help"], ["--version"]],
)
def test_help_does_not_load_heavy_modules(arguments):
    code = f"import sys; from bonas.cli import main\ntry: main({arguments!r})\nexcept SystemExit as end: assert not end.code"  # noqa: E501
    code += "\nheavy = {'jax', 'numpy', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules); assert not heavy, heavy"  # noqa: E501
    began = time.process_time()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert time.process_time() - began < 1.0
    assert "bonas" in done.stdout


def test_every_family_and_every_data_set_of_scikit_learn_is_offered(capsys):
    assert tuple(arguments.FAMILIES) == tuple(FAMILIES)
    with pytest.raises(SystemExit):
        arguments.main(["search", "--help"])
    shown = capsys.readouterr().out
    assert f"--space {{{','.join(FAMILIES)}}}" in shown
    assert arguments.main(["search", "unknown"]) == 2
    assert f"data sets: {', '.join(SKLEARN_SETS)}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (
            ["search", "nowhere.csv", "--target", "y"],
            "nowhere.csv does not exist; expected a file, or one of scikit-learn's data sets",
        ),
        (["search", "mnist"], "one of scikit-learn's data sets: diabetes"),
        (
            ["search", "houses.csv"],
            "--target is required for houses.csv; choose one of its columns: 'area', 'heating', "
            "'price'",
        ),
        (
            ["search", "houses.csv", "--target", "cost"],
            "has no column 'cost' to predict",
        ),
        (
            ["search", "houses.csv", "--target", "price"],
            "missing values in 'area' (1, first in row 4 (line 5))",
        ),
        (["search", "empty.csv", "--target", "y"], "empty.csv is empty"),
        (["search", "constant.csv", "--target", "y"], "the target 'y' is constant"),
        (
            ["search", "text.csv", "--target", "y"],
            "column 'x' mixes numbers and text: row 2 (line 3) holds 'many'",
        ),
        (
            ["search", "few.csv", "--target", "y"],
            "few.csv has 2 rows; a search needs at least 30",
        ),
        (
            [
                "search",
                "houses.csv",
                "--target",
                "heating",
                "--space",
                "bnn",
                "--impute",
            ],
            "'bnn' supports only regression",
        ),
        (["search", "--trials", "0"], "expected an integer of at least 1; got 0"),
        (["search", "--seconds", "soon"], "expected a number; got 'soon'"),
        (["search", "--seed", "1.5"], "expected an integer; got '1.5'"),
        (
            ["search", "--seed", "-1"],
            "expected an integer from 0 to 4294967295; got -1",
        ),
        (
            ["search", "--seed", "99999999999999999999"],
            "expected an integer from 0 to 4294967295; got 99999999999999999999",
        ),
        (
            ["search", "--seed", "4294967296"],
            "expected an integer from 0 to 4294967295",
        ),
        (["search", "--space", "cnn"], "invalid choice: 'cnn'"),
        (["search", "--workers", "2", "--parallel", "2"], "not allowed with"),
        (
            ["search", "--method", "curves", "--workers", "2"],
            "trains one network at a time",
        ),
        (
            ["search", "--study", "houses.csv"],
            "neither a bonas study nor an SQLite file",
        ),
        (["search", "--study", "nowhere/s.db"], "nowhere"),
        (
            ["search", "houses.csv", "--target", "price", "--study", "houses.csv"],
            "would overwrite the data file",
        ),
        (
            ["search", "houses.csv", "--target", "price", "--study", "x.html"],
            "the suffix .html is reserved for reports; use for example x.db",
        ),
        (
            ["search", "houses.csv", "--target", "price", "--study", "x.network.npz"],
            "the suffix .npz is reserved for networks",
        ),
        (
            ["search", "own.network.npz"],
            "the networks of own.db would overwrite the data file own.network.npz",
        ),
        (
            ["search", "taken.csv", "--target", "price"],
            "taken.html is not a report and would be overwritten",
        ),
        (
            [
                "search",
                "houses.csv",
                "--target",
                "price",
                "--impute",
                "--scheduler",
                "nonsense",
            ],
            "--scheduler nonsense: missing port",
        ),
        (
            ["search", "houses.csv", "--bogus"],
            "bonas search: unrecognized arguments: --bogus (see bonas search --help)",
        ),
        (["resume", "nowhere.db"], "nowhere.db"),
        (["resume", "houses.csv"], "neither a bonas study nor an SQLite file"),
        (["report", "nowhere.db"], "nowhere.db"),
        (["predict", "nowhere.db", "houses.csv"], "nowhere.db"),
        (
            ["predict", "houses.csv", "houses.csv"],
            "neither a bonas study nor an SQLite file",
        ),
    ],
)
def test_mistakes_are_reported_in_one_line(folder, capsys, command, message):
    (folder / "empty.csv").write_text("")
    (folder / "constant.csv").write_text(
        "x,y\n" + "".join(f"{i},1.5\n" for i in range(40))
    )
    (folder / "text.csv").write_text(
        "x,y\n1,0.5\nmany,1.5\n" + "".join(f"{i},{i / 7}\n" for i in range(40))
    )
    (folder / "few.csv").write_text("x,y\n1,0.5\n2,0.7\n")
    (folder / "taken.html").write_text("<!DOCTYPE html><title>another page</title>")
    (folder / "taken.csv").write_bytes((folder / "houses.csv").read_bytes())
    np.savez(folder / "own.network.npz", X=np.arange(40.0)[:, None], y=np.arange(40.0))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        code = arguments.main(command)
    except SystemExit as end:  # argparse's
        code = end.code
    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("given", "population"),
    [(["--trials", "40"], 10), (["--trials", "8"], 5), (["--seconds", "9"], 20)],
)
def test_the_population_of_evolution_is_a_quarter_of_the_trials(given, population):
    args = arguments._make_parser().parse_args(
        ["search", "iris", "--method", "evolution", *given]
    )
    assert commands.make_job(args).population == population


def test_debug_raises_the_error(folder):
    with pytest.raises(ValueError, match="has no column 'cost' to predict"):
        arguments.main(["search", "houses.csv", "--target", "cost", "--debug"])
