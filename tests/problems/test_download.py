"""Downloads from a server of our own: whole and right, or nothing."""

import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bonas.problems.download import fetch, has_sha256

CONTENT = bytes(range(256)) * 1000  # more than one chunk
SHA256 = hashlib.sha256(CONTENT).hexdigest()
RIGHT, WRONG = has_sha256(SHA256), has_sha256("0" * 64)


class Handler(BaseHTTPRequestHandler):
    """/whole.bin is sent; /cut.bin stops half way; /unmeasured.bin has no length; all else is not
    found.
    """

    def do_GET(self):
        self.server.asked.append(self.path)
        known = self.path in ("/whole.bin", "/cut.bin", "/unmeasured.bin")
        self.send_response(200 if known else 404)
        if self.path != "/unmeasured.bin":
            self.send_header("Content-Length", str(len(CONTENT) if known else 0))
        self.end_headers()
        if known:
            self.wfile.write(
                CONTENT[: len(CONTENT) // 2] if self.path == "/cut.bin" else CONTENT
            )

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def running():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(running, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running.asked = []
    return running


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.server_port}"


def test_the_file_arrives_whole(url, tmp_path):
    assert (
        fetch(
            f"{url}/whole.bin", tmp_path / "a.bin", RIGHT, progress=False
        ).read_bytes()
        == CONTENT
    )


def test_a_file_of_unknown_length_arrives_whole(url, tmp_path):
    assert (
        fetch(
            f"{url}/unmeasured.bin", tmp_path / "a.bin", RIGHT, progress=False
        ).read_bytes()
        == CONTENT
    )


def test_folders_are_made(url, tmp_path):
    assert fetch(
        f"{url}/whole.bin", tmp_path / "new" / "folder" / "a.bin", RIGHT, progress=False
    ).is_file()


def test_nothing_but_the_file_is_left(url, tmp_path):
    fetch(f"{url}/whole.bin", tmp_path / "a.bin", RIGHT, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_second_call_asks_no_server(url, server, tmp_path):
    for _ in range(2):
        fetch(f"{url}/whole.bin", tmp_path / "a.bin", RIGHT, progress=False)
    assert server.asked == ["/whole.bin"]


def test_a_wrong_checksum_names_both(url, tmp_path):
    with pytest.raises(ValueError, match=f"digest {SHA256}; expected {'0' * 64}"):
        fetch(f"{url}/whole.bin", tmp_path / "a.bin", WRONG, progress=False)


def test_a_check_sees_the_whole_file_before_it_has_its_name(url, tmp_path):
    seen = []
    path = tmp_path / "a.bin"
    fetch(
        f"{url}/whole.bin",
        path,
        lambda part: seen.append((part.read_bytes() == CONTENT, path.exists())),
        progress=False,
    )
    assert seen == [(True, False)]


def test_what_a_check_finds_wrong_is_said_of_the_url(url, tmp_path):
    """Not of the temporary file, which is gone by then."""

    def check(_):
        raise ValueError("line 3 is empty")

    with pytest.raises(
        ValueError,
        match=f"^{re.escape(url)}/whole.bin is not the expected file: line 3 is empty$",
    ):
        fetch(f"{url}/whole.bin", tmp_path / "a.bin", check, progress=False)


def test_a_cut_connection_says_how_far_it_came(url, tmp_path):
    with pytest.raises(
        ConnectionError, match=f"after {len(CONTENT) // 2} of {len(CONTENT)} bytes"
    ):
        fetch(f"{url}/cut.bin", tmp_path / "a.bin", RIGHT, progress=False)


@pytest.mark.parametrize(
    ("page", "check", "problem"),
    [
        ("whole.bin", WRONG, ValueError),
        ("cut.bin", RIGHT, ConnectionError),
        ("none.bin", RIGHT, ConnectionError),
    ],
    ids=["check", "cut", "not found"],
)
def test_a_failed_download_leaves_nothing(url, tmp_path, page, check, problem):
    with pytest.raises(problem):
        fetch(f"{url}/{page}", tmp_path / "a.bin", check, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_download_works_after_one_that_was_cut(url, tmp_path):
    with pytest.raises(ConnectionError):
        fetch(f"{url}/cut.bin", tmp_path / "a.bin", RIGHT, progress=False)
    assert (
        fetch(
            f"{url}/whole.bin", tmp_path / "a.bin", RIGHT, progress=False
        ).read_bytes()
        == CONTENT
    )


def test_a_page_that_is_not_there_is_named(url, tmp_path):
    with pytest.raises(ConnectionError, match=r"cannot download .*none\.bin: .*404"):
        fetch(f"{url}/none.bin", tmp_path / "a.bin", RIGHT, progress=False)


def test_a_server_that_is_not_there_is_named(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as gone:
        port = gone.server_port
    with pytest.raises(
        ConnectionError, match=f"cannot download http://127.0.0.1:{port}/a.bin"
    ):
        fetch(
            f"http://127.0.0.1:{port}/a.bin", tmp_path / "a.bin", RIGHT, progress=False
        )


def test_a_folder_that_cannot_be_written_is_named(url, tmp_path):
    """A file in the folder's place: permissions would not stop an administrator."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    with pytest.raises(
        OSError, match=re.escape(f"cannot write to the folder {blocked}")
    ):
        fetch(f"{url}/whole.bin", blocked / "a.bin", RIGHT, progress=False)


def test_a_folder_that_cannot_be_written_costs_no_download(url, server, tmp_path):
    (tmp_path / "blocked").write_text("")
    with pytest.raises(OSError, match="cannot write"):
        fetch(f"{url}/whole.bin", tmp_path / "blocked" / "a.bin", RIGHT, progress=False)
    assert server.asked == []


def test_progress_is_shown_apart_from_the_output(url, tmp_path, capsys):
    fetch(f"{url}/whole.bin", tmp_path / "a.bin", RIGHT)
    shown = capsys.readouterr()
    assert (shown.out, "a.bin" in shown.err) == ("", True)


def test_progress_can_be_silent(url, tmp_path, capsys):
    fetch(f"{url}/whole.bin", tmp_path / "a.bin", RIGHT, progress=False)
    assert capsys.readouterr() == ("", "")
