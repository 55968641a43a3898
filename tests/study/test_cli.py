"""The `bonas` command as a newcomer meets it before anything is searched: help, wrong arguments, Ctrl-C."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from study.command import houses

from bonas.study import cli, commands


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with a table in it."""
    monkeypatch.chdir(tmp_path)
    houses(tmp_path / "houses.csv")
    return tmp_path


@pytest.mark.parametrize("arguments", [["--help"], ["search", "--help"], ["predict", "--help"], ["--version"]])
def test_help_comes_at_once(arguments):
    code = (
        f"import sys; from bonas.study import cli\ntry: cli.main({arguments!r})\nexcept SystemExit as end: assert not end.code"
    )
    code += "\nheavy = {'jax', 'numpy', 'matplotlib', 'sklearn'} & set(sys.modules); assert not heavy, heavy"
    began = time.process_time()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert time.process_time() - began < 1.0
    assert "bonas" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["search", "nowhere.csv", "--target", "y"], "nowhere.csv is no file, and no set that scikit-learn ships"),
        (["search", "mnist"], "no set that scikit-learn ships; those are diabetes"),
        (["search", "houses.csv"], "needs --target, one of its columns: 'area', 'heating', 'price'"),
        (["search", "houses.csv", "--target", "cost"], "has no target 'cost'"),
        (["search", "houses.csv", "--target", "price"], "missing values in 'area' (1, first in row 4 (line 5))"),
        (["search", "empty.csv", "--target", "y"], "empty.csv is empty"),
        (["search", "constant.csv", "--target", "y"], "the target 'y' is constant"),
        (["search", "text.csv", "--target", "y"], "column 'x' holds numbers, but 'many' in row 2 (line 3)"),
        (["search", "few.csv", "--target", "y"], "few.csv has 2 rows, too few"),
        (["search", "houses.csv", "--target", "heating", "--space", "bnn", "--impute"], "bnn is for regression"),
        (["search", "--trials", "0"], "must be at least 1"),
        (["search", "--seconds", "soon"], "'soon' is not a number"),
        (["search", "--seed", "1.5"], "'1.5' is not a whole number"),
        (["search", "--space", "cnn"], "invalid choice: 'cnn'"),
        (["search", "--workers", "2", "--parallel", "2"], "not allowed with"),
        (["search", "--method", "curves", "--workers", "2"], "it trains one at a time"),
        (["search", "--study", "houses.csv"], "it is no study of bonas"),
        (["search", "--study", "nowhere/s.db"], "nowhere"),
        (["search", "houses.csv", "--target", "price", "--study", "houses.csv"], "is the data themselves"),
        (
            ["search", "houses.csv", "--target", "price", "--study", "x.html"],
            "the ending .html is that of reports; name it x.db",
        ),
        (["search", "houses.csv", "--target", "price", "--study", "x.network.npz"], "the ending .npz is that of networks"),
        (["search", "own.network.npz"], "the networks of own.db would overwrite the data, own.network.npz"),
        (["search", "taken.csv", "--target", "price"], "taken.html is no report of bonas, and a report does not overwrite it"),
        (
            ["search", "houses.csv", "--target", "price", "--impute", "--scheduler", "nonsense"],
            "--scheduler nonsense: missing port",
        ),
        (["search", "houses.csv", "--bogus"], "bonas search: unrecognised arguments: --bogus (bonas search --help says more)"),
        (["resume", "nowhere.db"], "nowhere.db"),
        (["resume", "houses.csv"], "it is no study of bonas"),
        (["report", "nowhere.db"], "nowhere.db"),
        (["predict", "nowhere.db", "houses.csv"], "there is no study at nowhere.db"),
        (["predict", "houses.csv", "houses.csv"], "it is no study of bonas"),
    ],
)
def test_mistakes_are_told_in_one_line(folder, capsys, arguments, message):
    (folder / "empty.csv").write_text("")
    (folder / "constant.csv").write_text("x,y\n" + "".join(f"{i},1.5\n" for i in range(40)))
    (folder / "text.csv").write_text("x,y\n1,0.5\nmany,1.5\n" + "".join(f"{i},{i / 7}\n" for i in range(40)))
    (folder / "few.csv").write_text("x,y\n1,0.5\n2,0.7\n")
    (folder / "taken.html").write_text("<!DOCTYPE html><title>another page</title>")
    (folder / "taken.csv").write_bytes((folder / "houses.csv").read_bytes())
    np.savez(folder / "own.network.npz", X=np.arange(40.0)[:, None], y=np.arange(40.0))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        code = cli.main(arguments)
    except SystemExit as end:  # argparse's
        code = end.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(("given", "population"), [(["--trials", "40"], 10), (["--trials", "8"], 5), (["--seconds", "9"], 20)])
def test_most_trials_of_an_evolution_are_bred(given, population):
    args = cli._parser().parse_args(["search", "iris", "--method", "evolution", *given])
    assert commands._job(args).population == population


def test_debug_shows_where_an_error_comes_from(folder):
    with pytest.raises(ValueError, match="has no target 'cost'"):
        cli.main(["search", "houses.csv", "--target", "cost", "--debug"])


def test_an_interrupt_that_a_callback_would_swallow_comes_again():
    """JAX's callback for the garbage collector is Python code, in which an exception is ignored."""

    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)
        return "not interrupted"

    before = signal.signal(signal.SIGINT, cli._interrupt)
    try:
        assert _xla_gc_callback() == "not interrupted"
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30.0)
    finally:
        signal.signal(signal.SIGINT, before)
