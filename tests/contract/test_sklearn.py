"""The estimators are what scikit-learn takes for estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from streamgp.kernels import Linear
from streamgp.sklearn import ContinualGPClassifier, ContinualGPRegressor

# Fit dozens of times: nothing is learned but the posterior, and that at few points.
CHEAP = {"kernel": Linear(), "budget": 32, "learning": None}


@parametrize_with_checks([ContinualGPRegressor(**CHEAP), ContinualGPClassifier(**CHEAP)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
