"""Compare the river estimator with river's own models on a stream of polls.

The stream has 1,001 polls of presidential approval, from river. Every model predicts each poll
before it learns it.
"""

import time

from river import datasets, forest, linear_model, metrics, preprocessing

from streamgp.river import ContinualGPRegressor
from streamgp_lab.checks import command
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table

_POLLS = 1001
_SKIPPED = 10  # the first polls do not count: a first guess of zero is wrong by 44 points


def models() -> dict:
    scaler = preprocessing.StandardScaler
    return {
        "ContinualGPRegressor": ContinualGPRegressor(),
        "ContinualGPRegressor, forgetting=0.98": ContinualGPRegressor(forgetting=0.98),
        "BayesianLinearRegression": linear_model.BayesianLinearRegression(),
        "BayesianLinearRegression, smoothing=0.8": linear_model.BayesianLinearRegression(
            smoothing=0.8
        ),
        "StandardScaler, LinearRegression": scaler() | linear_model.LinearRegression(),
        "ARFRegressor": forest.ARFRegressor(seed=0),
        "StandardScaler, ARFRegressor": scaler() | forest.ARFRegressor(seed=0),
    }


def main() -> None:
    rows = []
    with bar("river_stream", _POLLS * len(models())) as line:
        for name, model in models().items():
            line.show(name)
            mae, rmse = metrics.MAE(), metrics.RMSE()
            begin = time.perf_counter()
            for count, (x, y) in enumerate(datasets.TrumpApproval()):
                predicted = model.predict_one(x)
                model.learn_one(x, y)
                if count >= _SKIPPED:
                    mae.update(y, predicted)
                    rmse.update(y, predicted)
                line.advance()
            seconds = time.perf_counter() - begin
            rows.append([name, f"{mae.get():.3f}", f"{rmse.get():.3f}", f"{seconds:.1f}"])
    heading = ["model", "MAE", "RMSE", "seconds"]
    print(Table("river_stream", heading, rows).markdown())


if __name__ == "__main__":
    command("river_stream")
