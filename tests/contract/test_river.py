"""The estimators are what river takes for estimators."""

import itertools

import pytest
from river import checks

from streamgp.kernels import Linear
from streamgp.river import ContinualGPClassifier, ContinualGPRegressor, stream

# Nothing is learned but the posterior; a line needs no more points than there are features.
CHEAP = {"kernel": Linear(), "budget": 32, "learning": None}
ROWS = 30  # of each data set, of the 200 or 2,000 that the checks would take

own = checks._yield_datasets


def short(model, scale=1):
    for dataset in own(model, scale):
        yield list(itertools.islice(dataset, ROWS))


def cases():
    checks._yield_datasets = short
    try:
        for model in (ContinualGPRegressor(**CHEAP), ContinualGPClassifier(**CHEAP)):
            for i, check in enumerate(checks.yield_checks(model)):
                yield pytest.param(model, check, id=f"{type(model).__name__}-{check.__name__}-{i}")
    finally:
        checks._yield_datasets = own


@pytest.mark.parametrize(("model", "check"), list(cases()))
def test_rivers_own_checks(model, check, monkeypatch):
    monkeypatch.setattr(stream, "_ENOUGH", 8)  # so that most rows come after the start
    check(model.clone())
