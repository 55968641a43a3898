"""500 mutated files; `python -m campaign.fuzz_files --inputs 20000` runs many."""

import pickle

import pytest
from campaign import fuzz_files


@pytest.mark.slow
def test_mutated_files_work_or_are_explained_in_one_line():
    problems, outcomes = fuzz_files.fuzz(range(500))
    assert not problems, "\n".join(problems)
    assert min(outcomes["worked"], outcomes["explained"]) > 500


class _Trap:
    def __reduce__(self):
        return list, ()


def _hang(path):
    while True:
        pass


def _raise(error):
    def call(path):
        raise error

    return call


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (_raise(KeyError("x")), "KeyError"),
        (_raise(ValueError("two\nlines")), "not one line"),
        (_raise(ValueError()), "not one line"),
        (_hang, "took more than"),
        (lambda path: pickle.loads(pickle.dumps(_Trap())), "pickle.find_class"),
    ],
    ids=["error", "lines", "empty", "hang", "code"],
)
def test_the_fuzzer_notices(call, words, monkeypatch):
    monkeypatch.setattr(fuzz_files, "_SECONDS", 0.2)
    with fuzz_files.time_limits():
        problem, _ = fuzz_files.problem_of(call, None)
    assert words in problem


def test_errors_of_users_are_no_problems():
    with fuzz_files.time_limits():
        assert fuzz_files.problem_of(_raise(ValueError("no")), None) == ("", "no")
        assert fuzz_files.problem_of(lambda path: None, None) == ("", "")
