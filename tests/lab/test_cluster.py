"""The same runs by Ray, on two nodes of which one is killed in the middle."""

import time
from types import SimpleNamespace

import pytest
from tests.lab.conftest import TINY

from posenc.lab import planned, trained
from posenc.lab.cluster import RayRunner


def test_without_ray_the_extra_is_named(tiny, store, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'posenc\[ray\]'"):
        RayRunner(tiny(), store).run()


def test_a_process_that_ends_without_a_result_has_failed(tiny, store, monkeypatch):
    """Whatever its status: else the grid would end as if nothing had gone wrong."""
    ray = SimpleNamespace(get=lambda status: status)
    monkeypatch.setattr("posenc.lab.cluster._ray", lambda: ray)
    grid = tiny()
    for run, status in zip(planned(grid, store).runs, (0, 1, 2, 3), strict=True):
        RayRunner(grid, store)._ended(run, status)
        assert store.failure(run.id)["said"] == f"its process ended with status {status}"
        assert store.has_failed(run.id)


class KillsTheOtherNode:
    """Waits until runs are at work on both nodes, and then kills the one that is not the head."""

    def __init__(self, cluster, node, store):
        self.cluster, self.node, self.store = cluster, node, store

    def changed(self, plan, active):
        if self.node is None or active < 2:
            return
        until = time.monotonic() + 120
        while len(list((self.store.root / "checkpoints").glob("[!.]*"))) < 2:
            if time.monotonic() > until or any(self.store.done()):
                break
            time.sleep(0.05)
        self.cluster.remove_node(self.node, allow_graceful=False)
        self.node = None

    def ended(self, run, said): ...


@pytest.mark.slow("starts a cluster of two local nodes")
def test_a_cluster_that_loses_a_node_makes_every_run(tiny, store):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    grid = tiny(text=TINY.replace("steps = 4", "steps = 200").replace("seeds = 2", "seeds = 1"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        watcher = KillsTheOtherNode(cluster, node, store)
        RayRunner(grid, store, watcher, every=0.05).run()
        assert watcher.node is None, "the node was not killed"
    finally:
        ray.shutdown()
        cluster.shutdown()
    found = {each["id"]: each["outcome"] for each in store.results()}
    assert len(found) == 2
    for run in planned(grid, store).runs:
        assert trained(run.configuration).written == found[run.id]
