"""The page served: to this machine, under its own names, and nowhere else."""

import http.client
import signal
import subprocess
import sys

import pytest

from posenc.explorer import page


def ask(port: int, path: str = "/", method: str = "GET", host: str | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_the_page_comes_with_its_policy(port):
    answer, body = ask(port)
    assert (answer.status, body) == (200, page())
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example"])
def test_foreign_names_are_not(port, host):
    assert ask(port, host=host)[0].status == 421


def test_there_is_one_page_and_no_writing(port):
    asked = {"/etc/passwd": 404, "/../x": 404, "/?anything": 200}
    assert {path: ask(port, path)[0].status for path in asked} == asked
    assert ask(port, method="POST")[0].status == 501
    assert ask(port, method="HEAD")[1] == ""


def test_ctrl_c_ends_the_command_cleanly():
    words = [sys.executable, "-m", "posenc", "explore", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = subprocess.Popen(words, **pipes)
    said = running.stdout.readline()
    port = int(said.split("http://127.0.0.1:")[1].split("/")[0])
    assert ask(port)[0].status == 200
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=10)
    assert (running.returncode, err) == (0, "")
    assert "ended" in out
