"""The forecaster is what sktime takes for a forecaster."""

import pytest
from sktime.utils.estimator_checks import check_estimator

from streamgp.sktime import ContinualGPForecaster


@pytest.mark.filterwarnings("ignore")  # of sktime and of its checks
@pytest.mark.parametrize("settings", ContinualGPForecaster.get_test_params(), ids=str)
def test_sktimes_own_checks(settings):
    results = check_estimator(ContinualGPForecaster(**settings), verbose=False)
    assert {name: found for name, found in results.items() if found != "PASSED"} == {}
    ran = {name.split("[")[0] for name in results}
    assert {"test_predict_proba", "test_update_predict_predicted_index"} <= ran
