"""What is said of a search before it begins, and when it is stopped."""

import bonas
from bonas.search import random
from bonas.study.job import Job
from bonas.study.opening import done, so_far

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0))


def test_trials_that_were_begun_in_vain_are_not_done(tmp_path):
    job = Job("iris", "")
    with bonas.Study(tmp_path / "s.db", SPACE, search=random(SPACE)) as study:
        study.tell(study.ask(), 1.0)
        assert so_far(study, job) == "1 trial done"
        study.fail(study.ask(), "no")
        study.ask()
        assert so_far(study, job) == "2 trials done, 1 to repeat"
        assert done(study, job) == 2


def test_parts_that_trained_nothing_are_not_counted(tmp_path):
    job = Job("iris", "", method="curves")
    with bonas.Study(tmp_path / "s.db", SPACE, search=random(SPACE)) as study:
        for reports in ((0.5,), ()):
            trial = study.ask()
            for step, value in enumerate(reports):
                trial.report(step, value)
            study.tell(trial, 0.5)
        assert so_far(study, job) == "1 trial done"
