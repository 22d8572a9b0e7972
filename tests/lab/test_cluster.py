"""The same runs by Ray, on two nodes of which one is killed in the middle."""

import sys
import time

import pytest
from tests.lab.conftest import TINY

from posenc.lab import planned, trained
from posenc.lab.running import RayRunner, Told


def test_without_ray_the_extra_is_named(tiny, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"posenc\[ray\]"):
        RayRunner(tiny(), store, Told(store, 1)).run()


class KillsTheOtherNode:
    """Waits until both nodes are at work, and then kills the one that is not the head."""

    def __init__(self, cluster, node, store):
        self.cluster, self.node, self.store = cluster, node, store

    def changed(self, plan, active):
        if self.node is None or active < 2:
            return
        until = time.monotonic() + 120
        while sum(self.store.is_running(run.id) for run in plan.runs) < 2:
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
        RayRunner(grid, store, watcher).run()
        assert watcher.node is None, "the node was not killed"
    finally:
        ray.shutdown()
        cluster.shutdown()
    found = {each["id"]: each["outcome"] for each in store.results()}
    assert len(found) == 2
    for run in planned(grid, store).runs:
        assert trained(run.configuration).written == found[run.id]
