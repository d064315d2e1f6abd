"""All methods by name, as they are for one series."""

from collections.abc import Callable

from streamgp_lab.races.forecasts import naive, refitted
from streamgp_lab.races.forecasts.ours import Ours
from streamgp_lab.races.forecasts.rolling import Forecaster
from streamgp_lab.races.forecasts.series import Series

LAST, PLAIN, SEASONS = "last value", "streamgp", "streamgp, seasons="
ETS, ARIMA = "ETS", "ARIMA"
OURS = (PLAIN, SEASONS)

METHODS: dict[str, Callable[[Series], Forecaster]] = {
    LAST: lambda series: naive.LastValue(series.ahead),
    "seasonal naive with drift": lambda series: naive.SeasonalNaive(series.ahead, series.season),
    ETS: lambda series: refitted.ETS(series.season),
    ARIMA: lambda series: refitted.ARIMA(series.season),
    "SNARIMAX (river)": lambda series: naive.Snarimax(series.ahead, series.season),
    "GP on a window (scikit-learn)": lambda series: refitted.WindowGP(series.season),
    PLAIN: lambda series: Ours(),
    SEASONS: lambda series: Ours(series.season),
}
