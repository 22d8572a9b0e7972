"""KERPLE against plain loops written from its paper, and what its bounds do to learning."""

from math import log

import pytest
import torch

from posenc import KERPLE

Q, K = torch.tensor([700, 3, 512, 40]), torch.tensor([0, 5, 700, 511, 2])


def in_the_authors_code(kernel, p, a, steps, rate=0.1, distance=3.0):
    """Their forward, by assignment to the parameters, and plain gradient descent between."""
    numbers = {"p": p, "a": a}
    trajectory = []
    for direction in steps:
        bounds = {"p": MOST if kernel == "power" else None, "a": None}
        for name, most in bounds.items():
            numbers[name] = max(LEAST, numbers[name])
            numbers[name] = numbers[name] if most is None else min(most, numbers[name])
        p, a = numbers["p"], numbers["a"]
        if kernel == "log":
            slopes = {"p": -log(1 + a * distance), "a": -p * distance / (1 + a * distance)}
        else:
            slopes = {"p": -a * distance**p * log(distance), "a": -(distance**p)}
        for name, slope in slopes.items():
            numbers[name] -= rate * direction * slope
        trajectory.append(dict(numbers))
    return trajectory


LEAST, MOST = 0.01, 2.0


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_forty_steps_out_and_twenty_back_are_the_authors(kernel):
    """Clamped in value alone, a number drifts away beyond its bound and is long in coming back."""
    steps = [-1.0] * 40 + [1.0] * 20
    kerple = KERPLE(1, kernel).double()
    with torch.no_grad():
        kerple.p.fill_(0.7)
        kerple.a.fill_(0.3)
    wanted = in_the_authors_code(kernel, 0.7, 0.3, steps)
    for direction, want in zip(steps, wanted, strict=True):
        kerple.zero_grad()
        (direction * kerple.profile([3], dtype=torch.float64)).sum().backward()
        with torch.no_grad():
            for parameter in (kerple.p, kerple.a):
                parameter -= 0.1 * parameter.grad
        assert kerple.p.item() == pytest.approx(want["p"], rel=1e-12)
        assert kerple.a.item() == pytest.approx(want["a"], rel=1e-12)
