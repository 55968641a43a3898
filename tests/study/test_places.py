"""Files that the command may write; what it refuses is in test_cli.py and test_report.py."""

import os

import pytest

from bonas.study.places import check_report, check_study_path, write_predictions_over


def test_a_folder_that_may_not_be_written_to_is_told_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not hold for root
    with pytest.raises(ValueError, match="may not be written to: --study FILE keeps everything elsewhere"):
        check_study_path(tmp_path / "s.db", tmp_path / "houses.csv")


def test_a_hard_link_to_the_data_is_the_data(tmp_path):
    (tmp_path / "houses.csv").write_text("a,b\n")
    os.link(tmp_path / "houses.csv", tmp_path / "s.db")
    with pytest.raises(ValueError, match="is the data themselves"):
        check_study_path(tmp_path / "s.db", tmp_path / "houses.csv")


def test_reports_and_predictions_may_go_where_nothing_is_kept(tmp_path):
    for place in (tmp_path / "new", tmp_path / "empty", tmp_path / "null"):
        (tmp_path / "empty").write_text("")
        if place.name == "null":
            place.symlink_to(os.devnull)
        check_report(place, tmp_path / "s.db")
        write_predictions_over(place, b"row,y\n1,2\n")
    assert (tmp_path / "new").read_bytes() == b"row,y\n1,2\n"


def test_predictions_of_another_target_are_other_things(tmp_path):
    (tmp_path / "y.csv").write_bytes(b"row,y\r\n1,2\r\n")
    write_predictions_over(tmp_path / "y.csv", b"row,y\n1,3\n")
    with pytest.raises(ValueError, match="is not overwritten"):
        write_predictions_over(tmp_path / "y.csv", b"row,z\n1,3\n")
    assert (tmp_path / "y.csv").read_bytes() == b"row,y\n1,3\n"
