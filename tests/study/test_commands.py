"""What the `bonas` command does: a search on a table of one's own, stopped, resumed, finished, and predicted with."""

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
from study.command import BONAS, SMALL, houses, killed, run, started, wait_for_line

import bonas
from bonas.problems.examples import Examples, parts
from bonas.study import cli


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with a table in it."""
    monkeypatch.chdir(tmp_path)
    houses(tmp_path / "houses.csv")
    return tmp_path


# From a table to predictions


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A folder in which a search has run, and what it said."""
    folder = tmp_path_factory.mktemp("searched")
    houses(folder / "houses.csv")
    done = run("search", "houses.csv", *SMALL, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.slow
def test_a_search_leaves_a_study_a_network_and_a_report(searched):
    folder, done = searched
    assert {path.name for path in folder.iterdir()} >= {"houses.db", "houses.network.npz", "houses.html"}
    assert "the value of a trial is its validation RMSE, in the units of 'price'" in done.stdout
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
def test_the_rows_of_the_test_are_not_used_before(searched, tmp_path):
    """Other targets in those rows change nothing of what is tried, validated and kept."""
    folder, _ = searched
    header, *lines = (folder / "houses.csv").read_text().splitlines()
    blank = Examples(np.zeros((len(lines), 1)), np.zeros(len(lines)), "regression", ("",))
    for row in parts(blank, 0, (0.8, 0.0, 0.2))[2]:
        others, _, price = lines[row].rpartition(",")
        lines[row] = f"{others},-{price}"
    spoilt = [header, *lines]
    (tmp_path / "houses.csv").write_text("\n".join(spoilt) + "\n")
    assert run("search", "houses.csv", *SMALL, "--quiet", folder=tmp_path).returncode == 0
    rows = [{"area": 100.0, "heating": "oil"}]
    ours, theirs = (bonas.load(place / "houses.db") for place in (folder, tmp_path))
    assert ours.about["validation"] == theirs.about["validation"]
    assert ours.about["test"] != theirs.about["test"]
    np.testing.assert_array_equal(ours.predict(rows).value, theirs.predict(rows).value)


@pytest.mark.slow
def test_predictions_have_an_uncertainty(searched):
    folder, _ = searched
    (folder / "new.csv").write_text("heating,area\noil,100\ngas,150\n")
    done = run("predict", "houses.db", "new.csv", "--out", "said.csv", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (folder / "said.csv").open() as file:
        rows = list(csv.DictReader(file))
    said = bonas.load(folder / "houses.db").predict([{"area": 100.0, "heating": "oil"}, {"area": 150.0, "heating": "gas"}])
    assert [row["row"] for row in rows] == ["1", "2"]
    np.testing.assert_allclose([float(row["price"]) for row in rows], said.value, rtol=1e-5)
    np.testing.assert_allclose([float(row["price_std"]) for row in rows], said.std, rtol=1e-5)
    assert (said.std > 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("area\n100\n", "lacks 'heating'"),
        ("area,heating,garden\n100,oil,1\n", "has 'garden'"),
        ("area,heating\n100,coal\n", "'coal' is none of 'gas', 'oil'"),
        ("area,heating\nbig,gas\n", "'big' is not a number"),
    ],
)
def test_new_rows_that_do_not_fit_are_refused(searched, capsys, text, message):
    folder, _ = searched
    (folder / "bad.csv").write_text(text)
    assert cli.main(["predict", str(folder / "houses.db"), str(folder / "bad.csv")]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1


@pytest.mark.slow
def test_unseen_categories_can_be_taken_for_missing(searched, capsys):
    folder, _ = searched
    (folder / "coal.csv").write_text("area,heating\n100,coal\n")
    assert cli.main(["predict", str(folder / "houses.db"), str(folder / "coal.csv"), "--unseen", "missing"]) == 0
    assert capsys.readouterr().out.startswith("row,price,price_std\n1,")


@pytest.mark.slow
def test_predictions_do_not_overwrite_what_they_read(searched, capsys):
    folder, _ = searched
    (folder / "keep.csv").write_text("area,heating\n100,gas\n")
    path = str(folder / "keep.csv")
    assert cli.main(["predict", str(folder / "houses.db"), path, "--out", path]) == 2
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.slow
def test_predictions_overwrite_nothing_but_predictions(searched, capsys):
    folder, _ = searched
    (folder / "new.csv").write_text("area,heating\n100,gas\n")
    predict = ["predict", str(folder / "houses.db"), str(folder / "new.csv"), "--out"]
    for name in ("houses.csv", "houses.network.npz", "houses.html"):
        before = (folder / name).read_bytes()
        assert cli.main([*predict, str(folder / name)]) == 2
        assert "is not overwritten" in capsys.readouterr().err
        assert (folder / name).read_bytes() == before
    (folder / "empty.csv").write_text("")
    for _ in range(2):
        assert cli.main([*predict, str(folder / "empty.csv")]) == 0
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
    told = json.loads(done.stdout)
    assert told["trials"] == {"told": 3, "failed": 0}
    assert told["test"]["linear"]["rmse"] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("command", [["resume", "houses.db"], ["search", "houses.csv", *SMALL]])
def test_a_finished_study_says_so_and_trains_nothing_again(searched, command):
    folder, _ = searched
    files = [folder / name for name in ("houses.network.npz", "houses.html")]
    before = [path.stat().st_mtime_ns for path in files]
    done = run(*command, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("houses.db is finished, with ")
    for words in ("bonas resume houses.db --trials N goes on", "Best architecture", "report   houses.html"):
        assert words in done.stdout
    assert "training" not in done.stdout
    assert [path.stat().st_mtime_ns for path in files] == before
    told = json.loads(run(*command, "--json", folder=folder).stdout)
    assert told["test"] == bonas.load(folder / "houses.db").about["test"]


@pytest.mark.slow
def test_a_finished_study_says_what_was_found_though_no_report_can_be_written(searched, tmp_path):
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
def test_a_finished_study_looks_for_data_that_are_said_to_be_elsewhere(searched):
    folder, _ = searched
    done = run("resume", "houses.db", "--data", "nosuch.csv", folder=folder)
    assert done.returncode == 2
    assert "nosuch.csv, which is not there" in done.stderr


@pytest.mark.slow
def test_another_search_does_not_go_into_the_same_study(searched):
    folder, _ = searched
    done = run("search", "houses.csv", *SMALL, "--seed", "5", folder=folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "houses.db" in done.stderr


@pytest.mark.slow
def test_data_that_have_changed_are_noticed(searched, tmp_path):
    folder, _ = searched
    houses(tmp_path / "moved.csv")
    for name in ("houses.db", "houses.db-wal", "houses.db-shm"):
        if (folder / name).exists():
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    with (tmp_path / "moved.csv").open("a") as file:
        file.write("50,gas,1\n")
    done = run("resume", "houses.db", "--data", "moved.csv", folder=tmp_path)
    assert done.returncode == 2
    assert "has changed since the study began" in done.stderr


# Interrupted


@pytest.mark.slow
def test_ctrl_c_says_how_to_resume(folder):
    process = started(folder, "--trials", "500", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_line(process, "[2/")
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.count("\n") == 1
    assert re.search(r"stopped: \d+ trials done(, 1 to repeat)?, all kept: bonas resume houses.db goes on", said)


@pytest.mark.slow
def test_a_killed_search_goes_on_with_the_same_points(folder):
    process = started(folder, "--trials", "500", stdout=subprocess.PIPE)
    wait_for_line(process, "[2/")
    killed(process)
    done = run("resume", "houses.db", "--trials", "6", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"study houses.db: \d+ trials done(, 1 to repeat)?\n", done.stdout)
    done = run("search", "houses.csv", *SMALL[:2], "--trials", "6", *SMALL[4:], "--study", "other.db", "--quiet", folder=folder)
    assert done.returncode == 0
    with bonas.Study(folder / "houses.db") as study, bonas.Study(folder / "other.db") as other:
        assert [(trial.config, trial.value) for trial in study.trials] == [
            (trial.config, trial.value) for trial in other.trials
        ]


@pytest.mark.slow
def test_a_search_killed_after_its_last_trial_still_keeps_its_networks(folder):
    process = started(folder, "--trials", "2", stdout=subprocess.PIPE)
    wait_for_line(process, "training the networks")
    killed(process)
    assert not (folder / "houses.network.npz").exists()
    done = run("resume", "houses.db", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "trial 2:" not in done.stdout
    assert bonas.load(folder / "houses.db").about["trials"] == {"told": 2, "failed": 0}


@pytest.mark.slow
def test_more_trials_that_were_stopped_go_on_though_the_networks_of_fewer_are_kept(searched, tmp_path):
    """What `bonas resume --trials` asked for is what the next `bonas resume` does."""
    folder, _ = searched
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    with bonas.Study(tmp_path / "houses.db") as study:
        had = len(study.trials)
    command = [BONAS, "resume", "houses.db", "--trials", "500"]
    for said, line in ((command, f"[{had + 1}/500]"), (command[:3], f"[{had + 2}/500]")):
        process = subprocess.Popen(said, cwd=tmp_path, text=True, stdout=subprocess.PIPE)
        wait_for_line(process, line)
        killed(process)


@pytest.mark.slow
def test_a_terminal_shows_what_is_training(folder):
    ours, theirs = pty.openpty()
    process = started(
        folder, "--trials", "2", stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
    assert process.wait() == 0
    for words in (b"2/2 trials", b"training ", b" left", b"best ", b"Best architecture"):
        assert words in shown


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--workers", "2"], ["--parallel", "2"]])
def test_trials_at_once(folder, how):
    done = run("search", "houses.csv", *SMALL, *how, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["trials"] == {"told": 2, "failed": 0}


@pytest.mark.slow
def test_a_search_on_learning_curves_advances_networks_stage_by_stage(folder):
    done = run("search", "houses.csv", *SMALL[2:], "--method", "curves", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "10 trials cost as much as 2 whole networks" in done.stdout
    assert "part 1 of 5: " in done.stdout
    assert "part 2 of 5: " in done.stdout
    with bonas.Study(folder / "houses.db") as study:
        configs = [repr(sorted(trial.config.items())) for trial in study.trials]
        assert len(configs) == 10  # two whole networks in five stages each
        assert len(set(configs)) < 10
        values = [trial.value for trial in study.trials if repr(sorted(trial.config.items())) == configs[0]]
        assert values == sorted(values, reverse=True)
