"""The regressor is what skpro takes for a probabilistic regressor."""

import pytest
from skpro.utils import check_estimator

from streamgp.skpro import ContinualGPRegressor


@pytest.mark.filterwarnings("ignore")  # of skpro and of its checks
@pytest.mark.parametrize("settings", ContinualGPRegressor.get_test_params(), ids=str)
def test_skpros_own_checks(settings):
    results = check_estimator(ContinualGPRegressor(**settings), verbose=False)
    assert {name: found for name, found in results.items() if found != "PASSED"} == {}
    ran = {name.split("[")[0] for name in results}
    assert {"test_input_output_contract", "test_online_update"} <= ran
