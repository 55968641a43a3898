"""The commands of `bonas`: a search that is interrupted, resumed, completed and used."""

import csv
import json
import os
import pty
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest
from cli.command import BONAS, SMALL, houses, kill, run, start_search, wait_for_line

import bonas
from bonas.cli import arguments, commands
from bonas.problems.examples import Examples, split_rows
from bonas.report import check_report_path
from bonas.tabular import Column, Columns, Predictions, SavedModel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table in it."""
    monkeypatch.chdir(tmp_path)
    houses(tmp_path / "houses.csv")
    return tmp_path


# From a table to predictions


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Run a search; return its folder and its process."""
    folder = tmp_path_factory.mktemp("searched")
    houses(folder / "houses.csv")
    done = run("search", "houses.csv", *SMALL, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.slow
def test_a_search_leaves_a_study_a_network_and_a_report(searched):
    folder, done = searched
    assert {path.name for path in folder.iterdir()} >= {
        "houses.db",
        "houses.network.npz",
        "houses.html",
    }
    assert "trial value: validation RMSE, in the units of 'price'" in done.stdout
    for words in (
        "[2/2] trial 1: RMSE ",
        "Best architecture",
        "ridge regression",
        "default MLP",
        "houses.html",
        "bonas predict houses.db",
    ):
        assert words in done.stdout
    assert done.stderr == ""


@pytest.mark.slow
def test_the_search_does_not_use_the_test_rows(searched, tmp_path):
    """Other targets in the test rows change only the test scores."""
    folder, _ = searched
    header, *lines = (folder / "houses.csv").read_text().splitlines()
    blank = Examples(
        np.zeros((len(lines), 1)), np.zeros(len(lines)), "regression", ("",)
    )
    for row in split_rows(blank, 0, (0.8, 0.0, 0.2))[2]:
        others, _, price = lines[row].rpartition(",")
        lines[row] = f"{others},-{price}"
    changed = [header, *lines]
    (tmp_path / "houses.csv").write_text("\n".join(changed) + "\n")
    assert (
        run("search", "houses.csv", *SMALL, "--quiet", folder=tmp_path).returncode == 0
    )
    rows = [{"area": 100.0, "heating": "oil"}]
    ours, theirs = (bonas.load(place / "houses.db") for place in (folder, tmp_path))
    assert ours.about["validation"] == theirs.about["validation"]
    assert ours.about["test"] != theirs.about["test"]
    np.testing.assert_array_equal(ours.predict(rows).value, theirs.predict(rows).value)


@pytest.mark.slow
def test_predictions_have_an_uncertainty(searched):
    folder, _ = searched
    (folder / "new.csv").write_text("heating,area\noil,100\ngas,150\n")
    done = run(
        "predict", "houses.db", "new.csv", "--out", "predictions.csv", folder=folder
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    predicted = bonas.load(folder / "houses.db").predict(
        [{"area": 100.0, "heating": "oil"}, {"area": 150.0, "heating": "gas"}]
    )
    assert [row["row"] for row in rows] == ["1", "2"]
    np.testing.assert_allclose(
        [float(row["price"]) for row in rows], predicted.value, rtol=1e-5
    )
    np.testing.assert_allclose(
        [float(row["price_std"]) for row in rows], predicted.std, rtol=1e-5
    )
    assert (predicted.std > 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("area\n100\n", "has no column 'heating'"),
        ("area,heating,garden\n100,oil,1\n", "has 'garden'"),
        ("area,heating\n100,coal\n", "expected one of 'gas', 'oil'; got 'coal'"),
        ("area,heating\nbig,gas\n", "'big' is not a number"),
    ],
)
def test_new_rows_with_wrong_columns_are_refused(searched, capsys, text, message):
    folder, _ = searched
    (folder / "bad.csv").write_text(text)
    assert (
        arguments.main(["predict", str(folder / "houses.db"), str(folder / "bad.csv")])
        == 2
    )
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1


@pytest.mark.slow
def test_unseen_categories_can_be_treated_as_missing(searched, capsys):
    folder, _ = searched
    (folder / "coal.csv").write_text("area,heating\n100,coal\n")
    assert (
        arguments.main(
            [
                "predict",
                str(folder / "houses.db"),
                str(folder / "coal.csv"),
                "--unseen",
                "missing",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("row,price,price_std\n1,")


@pytest.mark.slow
def test_predictions_do_not_overwrite_their_inputs(searched, capsys):
    folder, _ = searched
    (folder / "keep.csv").write_text("area,heating\n100,gas\n")
    path = str(folder / "keep.csv")
    assert (
        arguments.main(["predict", str(folder / "houses.db"), path, "--out", path]) == 2
    )
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.slow
def test_predictions_overwrite_only_predictions(searched, capsys):
    folder, _ = searched
    (folder / "new.csv").write_text("area,heating\n100,gas\n")
    predict = ["predict", str(folder / "houses.db"), str(folder / "new.csv"), "--out"]
    for name in ("houses.csv", "houses.network.npz", "houses.html"):
        before = (folder / name).read_bytes()
        assert arguments.main([*predict, str(folder / name)]) == 2
        assert "exists and does not contain predictions" in capsys.readouterr().err
        assert (folder / name).read_bytes() == before
    (folder / "empty.csv").write_text("")
    for _ in range(2):
        assert arguments.main([*predict, str(folder / "empty.csv")]) == 0
    assert (folder / "empty.csv").read_text().startswith("row,price,price_std")


@pytest.mark.slow
def test_the_calibration_of_the_networks_is_in_the_report(searched):
    folder, _ = searched
    with bonas.Study(folder / "houses.db") as study:
        held, result = study.notes["intervals"]["held"], study.notes["result"]
    assert held["90"] == pytest.approx(result["test"]["bonas"]["within_90"])
    assert 'id="figure-intervals"' in (folder / "houses.html").read_text("utf-8")


@pytest.mark.slow
def test_resuming_adds_trials_and_json_is_one_object(searched):
    folder, _ = searched
    done = run("resume", "houses.db", "--trials", "3", "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["trials"] == {"complete": 3, "pruned": 0, "failed": 0}
    assert result["test"]["linear"]["rmse"] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["resume", "houses.db"], ["search", "houses.csv", *SMALL]]
)
def test_a_complete_study_shows_its_result_and_trains_nothing(searched, command):
    folder, _ = searched
    files = [folder / name for name in ("houses.network.npz", "houses.html")]
    before = [path.stat().st_mtime_ns for path in files]
    done = run(*command, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("houses.db is complete (")
    for words in (
        "To continue: bonas resume houses.db --trials N",
        "Best architecture",
        "report   houses.html",
    ):
        assert words in done.stdout
    assert "training" not in done.stdout
    assert [path.stat().st_mtime_ns for path in files] == before
    result = json.loads(run(*command, "--json", folder=folder).stdout)
    assert result["test"] == bonas.load(folder / "houses.db").about["test"]


@pytest.mark.slow
def test_the_result_is_shown_even_if_no_report_can_be_written(searched, tmp_path):
    folder, _ = searched
    for name in ("houses.db", "houses.network.npz"):
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "houses.html").mkdir()
    os.utime(tmp_path / "houses.html", (0, 0))
    done = run("resume", "houses.db", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Best architecture" in done.stdout
    assert "report   not written (houses.html: Is a directory)" in done.stdout


@pytest.mark.slow
def test_a_complete_study_checks_moved_data(searched):
    folder, _ = searched
    done = run("resume", "houses.db", "--data", "nosuch.csv", folder=folder)
    assert done.returncode == 2
    assert "nosuch.csv does not exist" in done.stderr


@pytest.mark.slow
def test_another_search_cannot_use_the_study(searched):
    folder, _ = searched
    done = run("search", "houses.csv", *SMALL, "--seed", "5", folder=folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "houses.db" in done.stderr


@pytest.mark.slow
def test_changed_data_are_detected(searched, tmp_path):
    folder, _ = searched
    houses(tmp_path / "moved.csv")
    for name in ("houses.db", "houses.db-wal", "houses.db-shm"):
        if (folder / name).exists():
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    with (tmp_path / "moved.csv").open("a") as file:
        file.write("50,gas,1\n")
    done = run("resume", "houses.db", "--data", "moved.csv", folder=tmp_path)
    assert done.returncode == 2
    assert "has changed since the study started" in done.stderr


# Interrupted


@pytest.mark.slow
def test_ctrl_c_tells_how_to_continue(folder):
    process = start_search(
        folder, "--trials", "500", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for_line(process, "[2/")
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.count("\n") == 1
    assert re.search(
        r"interrupted: \d+ trials done(, 1 to repeat)?\. To continue: bonas resume houses.db",
        errors,
    )


@pytest.mark.slow
def test_a_killed_search_continues_with_the_same_points(folder):
    process = start_search(folder, "--trials", "500", stdout=subprocess.PIPE)
    wait_for_line(process, "[2/")
    kill(process)
    done = run("resume", "houses.db", "--trials", "6", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(
        r"study: houses.db \(\d+ trials done(, 1 to repeat)?\)\n", done.stdout
    )
    done = run(
        "search",
        "houses.csv",
        *SMALL[:2],
        "--trials",
        "6",
        *SMALL[4:],
        "--study",
        "other.db",
        "--quiet",
        folder=folder,
    )
    assert done.returncode == 0
    with (
        bonas.Study(folder / "houses.db") as study,
        bonas.Study(folder / "other.db") as other,
    ):
        assert [(trial.config, trial.value) for trial in study.trials] == [
            (trial.config, trial.value) for trial in other.trials
        ]


@pytest.mark.slow
def test_a_search_killed_after_its_last_trial_saves_its_networks_when_resumed(folder):
    process = start_search(folder, "--trials", "2", stdout=subprocess.PIPE)
    wait_for_line(process, "training the final networks")
    kill(process)
    assert not (folder / "houses.network.npz").exists()
    done = run("resume", "houses.db", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "trial 2:" not in done.stdout
    assert bonas.load(folder / "houses.db").about["trials"] == {
        "complete": 2,
        "pruned": 0,
        "failed": 0,
    }


@pytest.mark.slow
def test_an_extended_search_that_is_killed_continues_to_its_new_limit(
    searched, tmp_path
):
    """`bonas resume` continues to the limit of the last `bonas resume --trials`."""
    folder, _ = searched
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    with bonas.Study(tmp_path / "houses.db") as study:
        had = len(study.trials)
    command = [BONAS, "resume", "houses.db", "--trials", "500"]
    for arguments_, line in (
        (command, f"[{had + 1}/500]"),
        (command[:3], f"[{had + 2}/500]"),
    ):
        process = subprocess.Popen(
            arguments_, cwd=tmp_path, text=True, stdout=subprocess.PIPE
        )
        wait_for_line(process, line)
        kill(process)


@pytest.mark.slow
def test_a_terminal_shows_the_networks_in_training(folder):
    ours, theirs = pty.openpty()
    process = start_search(
        folder,
        "--trials",
        "2",
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
    assert process.wait() == 0
    for words in (
        b"2/2 trials",
        b"training ",
        b" left",
        b"best ",
        b"Best architecture",
    ):
        assert words in shown


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--workers", "2"], ["--parallel", "2"]])
def test_trials_can_run_in_parallel(folder, options):
    done = run("search", "houses.csv", *SMALL, *options, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["trials"] == {
        "complete": 2,
        "pruned": 0,
        "failed": 0,
    }


@pytest.mark.slow
def test_a_search_on_learning_curves_advances_networks_stage_by_stage(folder):
    done = run("search", "houses.csv", *SMALL[2:], "--method", "curves", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "10 trials cost as much as 2 full training runs" in done.stdout
    assert "part 1 of 5: " in done.stdout
    assert "part 2 of 5: " in done.stdout
    with bonas.Study(folder / "houses.db") as study:
        configs = [repr(sorted(trial.config.items())) for trial in study.trials]
        assert len(configs) == 10  # two whole networks in five stages each
        assert len(set(configs)) < 10
        values = [
            trial.value
            for trial in study.trials
            if repr(sorted(trial.config.items())) == configs[0]
        ]
        assert values == sorted(values, reverse=True)


# Files that must not be overwritten


def test_a_folder_that_is_not_writable_is_refused(tmp_path, monkeypatch):
    # root may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(
        ValueError, match="is not writable; choose another path with --study FILE"
    ):
        commands.check_study_path(tmp_path / "s.db", tmp_path / "houses.csv")


def test_a_hard_link_to_the_data_is_the_data(tmp_path):
    (tmp_path / "houses.csv").write_text("a,b\n")
    os.link(tmp_path / "houses.csv", tmp_path / "s.db")
    with pytest.raises(ValueError, match="would overwrite the data file"):
        commands.check_study_path(tmp_path / "s.db", tmp_path / "houses.csv")


def test_reports_and_predictions_may_replace_empty_files(tmp_path):
    for place in (tmp_path / "new", tmp_path / "empty", tmp_path / "null"):
        (tmp_path / "empty").write_text("")
        if place.name == "null":
            place.symlink_to(os.devnull)
        check_report_path(place, tmp_path / "s.db")
        commands.replace_predictions(place, b"row,y\n1,2\n")
    assert (tmp_path / "new").read_bytes() == b"row,y\n1,2\n"


def test_predictions_do_not_replace_those_of_another_target(tmp_path):
    (tmp_path / "y.csv").write_bytes(b"row,y\r\n1,2\r\n")
    commands.replace_predictions(tmp_path / "y.csv", b"row,y\n1,3\n")
    with pytest.raises(ValueError, match="exists and does not contain predictions"):
        commands.replace_predictions(tmp_path / "y.csv", b"row,z\n1,3\n")
    assert (tmp_path / "y.csv").read_bytes() == b"row,y\n1,3\n"


# Predictions as CSV

VALUES = Predictions(np.array([1.5, -2.0]), np.array([0.25, 1.0]), None)
CLASSES = Predictions(np.array(["b", "a"]), None, np.array([[0.25, 0.75], [1.0, 0.0]]))


def empty_model(target, classes=()):
    task = "classification" if classes else "regression"
    return SavedModel({}, Columns(target, task, classes, (Column("x"),)), ())


@pytest.mark.parametrize(
    ("model", "predictions", "text"),
    [
        (empty_model("y"), VALUES, "row,y,y_std\n1,1.5,0.25\n2,-2,1\n"),
        (
            empty_model("y", ("a", "b")),
            CLASSES,
            "row,y,probability=a,probability=b\n1,b,0.250000,0.750000\n2,a,1.000000,0.000000\n",
        ),
        (empty_model("row"), VALUES, "row_number,row,row_std\n1,1.5,0.25\n2,-2,1\n"),
    ],
)
def test_rows_are_numbered_from_one_in_a_file_and_in_the_terminal(
    tmp_path, capsys, model, predictions, text
):
    commands.write_predictions(tmp_path / "predictions.csv", model, predictions)
    commands.write_predictions(None, model, predictions)
    assert (tmp_path / "predictions.csv").read_text() == text
    assert capsys.readouterr().out == text
