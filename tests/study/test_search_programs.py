"""Studies evaluate initial points before the model is compiled, and compile programs early."""

import threading

import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.study import StudyError, search_programs
from bonas.study.search_programs import SearchPrograms

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))


def cheap(initial=3, **settings):
    return bonas.bayes(
        SPACE,
        surrogate=surrogates.gp(gp.matern52(), steps=2),
        maximizer=acquire.random_candidates(SPACE, candidates=16),
        initial=initial,
        output="plain",
        **settings,
    )


def loss(config):
    return (config["a"] - 0.3) ** 2 + config["b"]


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that starts when it is told to."""
    start = threading.Event()
    compile_now = search_programs.in_background

    def wait_and_call(function):
        return compile_now(lambda: start.wait(60.0) and function())

    monkeypatch.setattr(search_programs, "in_background", wait_and_call)
    yield start
    start.set()


def configs(study):
    return [trial.config for trial in study.trials]


def test_initial_points_need_no_program(tmp_path, monkeypatch):
    monkeypatch.setattr(SearchPrograms, "_trace", lambda *_: pytest.fail("traced"))
    with bonas.Study(tmp_path / "runs.db", SPACE, search=cheap()) as study:
        study.optimize(loss, trials=3, progress=False)
        assert [trial.info["random"] for trial in study.trials] == [True] * 3


@pytest.mark.slow
def test_points_are_those_of_minimize_however_often_the_study_is_opened(
    tmp_path, compiler
):
    compiler.set()
    expected = bonas.minimize(loss, SPACE, trials=6, search=cheap(), progress=False)
    for trials in (1, 2, 4, 6):
        with bonas.Study(tmp_path / "runs.db", SPACE, search=cheap()) as study:
            study.optimize(loss, trials=trials, progress=False)
            found = configs(study)
    assert found == [each.config for each in expected.evaluations]


@pytest.mark.slow
def test_initial_points_are_evaluated_before_the_model_is_compiled(tmp_path, compiler):
    seen = []

    def objective(config):
        seen.append(compiler.is_set())
        if len(seen) == 3:
            compiler.set()
        return loss(config)

    with bonas.Study(tmp_path / "runs.db", SPACE, search=cheap()) as study:
        study.optimize(objective, trials=4, progress=False)
    assert seen == [False, False, False, True]


@pytest.mark.slow
def test_enqueued_trials_count_as_initial_points(tmp_path):
    """As in `tell` of the search, which knows their values when it chooses the next point."""
    found = []
    for early in (False, True):
        with bonas.Study(tmp_path / f"{early}.db", SPACE, search=cheap()) as study:
            if early:
                trial = study.ask()
                study.tell(trial, loss(trial.config))
            study.enqueue({"a": 0.5, "b": 0.25})
            study.optimize(loss, trials=4, progress=False)
            found.append([trial.info.get("random") for trial in study.trials])
    # the enqueued trial takes the place of an initial point, the last one is the model's
    assert found == [[None, True, True, False], [True, None, True, False]]


@pytest.mark.slow
def test_another_search_cannot_continue_initial_points(tmp_path):
    with bonas.Study(tmp_path / "runs.db", SPACE, search=cheap()) as study:
        study.optimize(loss, trials=2, progress=False)
    other = cheap(initial=[[0.1, 0.2], [0.3, 0.4]])
    with (
        bonas.Study(tmp_path / "runs.db", SPACE, search=other) as study,
        pytest.raises(StudyError, match="created with another search"),
    ):
        study.optimize(loss, trials=4, progress=False)


@pytest.mark.slow
def test_a_larger_capacity_is_compiled_before_it_is_needed(tmp_path, monkeypatch):
    prepared = []
    prepare = SearchPrograms.prepare

    def record(programs, capacity):
        prepared.append((capacity, len(study.trials)))
        prepare(programs, capacity)

    monkeypatch.setattr(SearchPrograms, "prepare", record)
    with bonas.Study(tmp_path / "a.db", SPACE, search=cheap(), _capacity=8) as study:
        study.optimize(loss, trials=10, progress=False)
    first = dict(reversed(prepared))
    assert first == {8: 1, 16: 5}
