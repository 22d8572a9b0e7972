"""Nobody makes what somebody alive is making; what the dead were at is free."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from posenc.lab import leases
from posenc.lab.leases import Heartbeat, claim


def test_one_of_many_claims_wins(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        won = [each for each in pool.map(lambda _: claim(tmp_path / "run"), range(50)) if each]
    assert len(won) == 1
    won[0].release()
    assert claim(tmp_path / "run") is not None


def test_the_lease_of_a_dead_process_is_free_at_once(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    born = leases._born(ended.pid)
    ended.wait()
    claim(tmp_path / "run")
    told = json.loads((tmp_path / "run").read_text())
    (tmp_path / "run").write_text(json.dumps({**told, "pid": ended.pid, "born": born}))
    assert claim(tmp_path / "run") is not None


def test_a_number_given_to_another_process_is_not_mistaken_for_the_owner(tmp_path):
    claim(tmp_path / "run")
    told = json.loads((tmp_path / "run").read_text())
    (tmp_path / "run").write_text(json.dumps({**told, "born": "1"}))
    assert claim(tmp_path / "run") is not None


def test_a_lease_of_another_machine_lasts_as_long_as_it_beats(tmp_path):
    path = tmp_path / "run"
    lease = claim(path)
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "host": "elsewhere"}))
    assert claim(path) is None
    old = os.stat(path).st_mtime - leases.STALE - 1
    os.utime(path, (old, old))
    assert leases.is_stale(path)
    with Heartbeat(lease, seconds=0.01) as beating:
        while leases.is_stale(path):
            beating.done.wait(0.01)
    assert claim(path) is None
    os.utime(path, (old, old))
    assert claim(path) is not None
    lease.release()  # no longer ours: nothing happens
    assert claim(path) is None
