"""Presidential approval, predicted then learned a poll at a time, beside river's own models.

    python -m streamgp_lab.checks.river_stream

1,001 polls that ship with river. Every model predicts each before it learns it.
"""

import time

from river import datasets, forest, linear_model, metrics, preprocessing

from streamgp.river import ContinualGPRegressor

_SKIPPED = 10  # polls that no score counts: a first guess of zero is 44 points off


def models() -> dict:
    scaler = preprocessing.StandardScaler
    return {
        "ContinualGPRegressor": ContinualGPRegressor(),
        "ContinualGPRegressor, forgetting=0.98": ContinualGPRegressor(forgetting=0.98),
        "BayesianLinearRegression": linear_model.BayesianLinearRegression(),
        "BayesianLinearRegression, smoothing=0.8": linear_model.BayesianLinearRegression(
            smoothing=0.8
        ),
        "StandardScaler | LinearRegression": scaler() | linear_model.LinearRegression(),
        "ARFRegressor": forest.ARFRegressor(seed=0),
        "StandardScaler | ARFRegressor": scaler() | forest.ARFRegressor(seed=0),
    }


def main() -> None:
    print(f"{'model':42s} {'MAE':>7s} {'RMSE':>7s} {'seconds':>8s} {'first':>7s}")
    for name, model in models().items():
        mae, rmse, first = metrics.MAE(), metrics.RMSE(), 0.0
        begin = time.perf_counter()
        for count, (x, y) in enumerate(datasets.TrumpApproval()):
            predicted = model.predict_one(x)
            model.learn_one(x, y)
            if count >= _SKIPPED:
                mae.update(y, predicted)
                rmse.update(y, predicted)
            if count == 99:  # by then all programs are compiled
                first = time.perf_counter() - begin
        seconds = time.perf_counter() - begin
        row = f"{mae.get():7.3f} {rmse.get():7.3f} {seconds:8.1f} {first:7.1f}"
        print(f"{name:42s} {row}", flush=True)


if __name__ == "__main__":
    main()
