"""The grid: the times of a chain, and how it comes to hold new rows.

Times come where rows are: at the rows themselves where these are far apart, and else at a spacing
that lets the states at both ends of an interval tell what lies between. A stretch without rows is
one interval, however long. Only intervals without data inside are split; that loses nothing.
"""

import math
from bisect import bisect_right

import numpy as np
from jaxtyping import Bool, Float

from streamgp.inference.chain.elements import Forward, joined, reached, taken
from streamgp.inference.chain.known import Known, Window
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.mixing import Mixing
from streamgp.inference.chain.segments import SIZE, Segment, cut, thinned
from streamgp.inference.chain.segments import joined as joined_segments
from streamgp.inference.chain.state import ChainState, Totals, following
from streamgp.inference.chain.stretch import Stretch

Times = Float[np.ndarray, " _n"]

_FINER = 0.5  # than the resolution of the kernels: new times, so that lengthscales may yet shrink
_SPARE = 0.75  # of the resolution: two intervals that together are shorter become one
_LEAST = 64 * float(np.finfo(float).eps)
_ROUNDING = 1e-9  # of a spacing: rows that come that much too early are at times, too
# Intervals, if there are rows for as many: `_AT_BEST`, but fewer of large states, whose passes take
# time. `_PLENTY` is their number times the square of a state's size.
_AT_LEAST, _AT_BEST, _PLENTY = 64, 1024, 25_600
_ALONE = 1.0  # the length of a first interval, where no kernel tells


def wanted(state: ChainState, mixing: Mixing, x: Times) -> Times:
    """The times that a chain lacks for rows at these inputs, in order."""
    rows = _distinct(x)
    spacing = _spacing(state, mixing, rows)
    if not state.segments:
        found = _onward(float(rows[0]), rows.tolist(), spacing)
        first = float(rows[0])
        return np.array([first, *(found or [first + spacing])])
    first, last = _ends(state)
    early, late, inside = [], [], rows[(rows > first) & (rows < last)]
    if rows[0] < first:
        early = [-t for t in _onward(-first, (-rows[::-1]).tolist(), spacing)]
    if rows[-1] > last:
        late = _onward(last, rows.tolist(), spacing)
    return np.array([*early[::-1], *_inside(state, inside, spacing), *late])


def times_after(state: ChainState, x: list[float]) -> list[float] | None:
    """The times that a chain lacks for rows in its last interval and beyond.

    They are all beyond its end; None if the last interval should be split.
    """
    rows = sorted(set(x))
    spacing = _spacing(state, state.mixing, np.array(rows))
    last = state.segments[-1]
    begin, end = last.times[-2:].tolist()
    inside = any(begin < row < end for row in rows)
    if inside and end - begin > 1.5 * spacing and last[-1:].can_split(state.mixing.law.size)[0]:
        return None
    return _onward(end, rows, spacing)


def settled(state: ChainState, x: Times) -> Bool[np.ndarray, " n"]:
    """Which inputs ask for no further time."""
    if not state.segments:
        return np.zeros(len(x), bool)
    first, last = _ends(state)
    found = (x >= first) & (x <= last)
    if not found.any():
        return found
    rows = _distinct(x)
    spacing = _spacing(state, state.mixing, rows)
    inside = np.array(_inside(state, rows[(rows > first) & (rows < last)], spacing))
    if len(inside):
        segment = state.known.window(float(inside[0]), float(inside[-1])).segment
        within = (x > segment.times[0]) & (x < segment.times[-1])
        found &= ~(within & np.isin(segment.place(x), segment.place(inside)))
    return found


def _distinct(x: Times) -> Times:
    """Each input once, in order."""
    return x if len(x) == 1 else np.unique(x)


def _ends(state: ChainState) -> tuple[float, float]:
    """Where the chain begins and where it ends."""
    return float(state.segments[0].times[0]), float(state.segments[-1].times[-1])


def _spacing(state: ChainState, mixing: Mixing, rows: Times) -> float:
    """How far apart new times are at least.

    A chain of few times has more than it needs, because that costs little, and lengthscales may
    yet shrink.
    """
    spacing = _FINER * mixing.resolution
    ends = [float(rows[0]), float(rows[-1])]
    if state.segments:
        ends += [float(state.segments[0].times[0]), float(state.segments[-1].times[0])]
    span = max(ends) - min(ends)
    if span > 0:
        spacing = min(spacing, span / _affordable(mixing.law))
    least = _LEAST * max(map(abs, ends))  # inputs are not told apart more closely
    return max(spacing, least) if math.isfinite(spacing) else _ALONE


def _affordable(law: Law) -> float:
    """How many intervals a chain may have without need."""
    return float(np.clip(_PLENTY / law.size**2, _AT_LEAST, _AT_BEST))


def _onward(now: float, rows: list[float], spacing: float, end: float = np.inf) -> list[float]:
    """Times after `now`, and before `end`, so that each row is at a time or between two."""
    found: list[float] = []
    number, count, least = 0, len(rows), spacing * (1.0 - _ROUNDING)
    while True:
        number = bisect_right(rows, now, number)
        if number == count or rows[number] >= end:
            return found
        step = rows[number]
        if step < now + least:
            step = now + spacing
        if step >= end - 0.5 * spacing:  # a short last interval holds what lies so close to the end
            if now < end - 1.5 * spacing:
                found.append(end - spacing)
            return found
        now = step
        found.append(now)


def _inside(state: ChainState, rows: Times, spacing: float) -> list[float]:
    """Times within intervals that can be split and are longer than need be."""
    if not len(rows):
        return []
    window = state.known.window(float(rows[0]), float(rows[-1]))
    segment = window.segment
    place = segment.place(rows)
    is_long = np.diff(segment.times) > 1.5 * spacing
    found: list[float] = []
    if not is_long[place].any():
        return found
    is_long &= segment.can_split(state.mixing.law.size)
    for k in np.unique(place[is_long[place]]):
        left, right = float(segment.times[k]), float(segment.times[k + 1])
        found += _onward(left, rows[place == k].tolist(), spacing, right)
    return found


def with_times(state: ChainState, times: Times) -> ChainState:
    """The state with further times, all of them where intervals can be split or beyond the ends."""
    if not len(times):
        return state
    if not state.segments:
        return state.replace(segments=tuple(cut(_blank(state, times))))
    known = state.known
    window = known.window(float(times[0]), float(times[-1]))
    segment, changed = _with_times(state, window.segment, times)
    forward = _known_forward(known, window, segment, changed)
    known = known.replaced(window, segment, forward)
    return following(state, known)


def _blank(state: ChainState, times: Times) -> Segment:
    model, law = state.model, state.mixing.law
    features = 2 * law.size + model.basis_size
    return Segment.blank(times, len(model.outputs.channel), len(model.outputs.left), features)


def _with_times(state: ChainState, segment: Segment, times: Times) -> tuple[Segment, int]:
    """A segment with further times, and the number of the last state that is as before."""
    first, last = segment.times[0], segment.times[-1]
    if times[0] > last:  # as at the end of a stream
        more = _blank(state, np.concatenate([segment.times[-1:], times]))
        return joined_segments([segment, more]), segment.count
    early, late = times[times < first], times[times > last]
    inside = times[(times > first) & (times < last)]
    changed = segment.count if not len(inside) else int(segment.place(inside[:1])[0])
    parts = [segment.split(inside, state.mixing.law.size) if len(inside) else segment]
    if len(early):
        changed = 0
        parts.insert(0, _blank(state, np.append(early, first)))
    if len(late):
        parts.append(_blank(state, np.concatenate([[last], late])))
    return joined_segments(parts), changed


def _known_forward(known: Known, window: Window, segment: Segment, changed: int) -> Forward:
    """What is known at the states of a segment that takes the place of a window's."""
    law, mixing = known.law, known.mixing
    kept = taken(window.forward, slice(changed + 1))
    if segment.times[0] < window.segment.times[0]:  # there is nothing before it
        kept = law.start(float(segment.times[0]), mixing.columns)
    last = taken(kept, slice(-1, None))
    if changed == window.segment.count:  # there are no data from there on
        return joined(kept, _moved(law, last, segment.times[changed:]))
    moves = law.moves(segment.times[changed:])
    sites = mixing.sites(segment[changed:].sums)
    stretch = Stretch(moves, sites, last, window.after)
    return joined(kept, taken(stretch.forward, slice(1, None)))


def _moved(law: Law, message: Forward, times: Times) -> Forward:
    """What is known at each of some times without data, from what is known at the first."""
    moves = law.moves(times) if len(times) == 2 else law.moves_over(times[1:] - times[0])
    return reached(message, moves)


# -- fewer times -----------------------------------------------------------------------------------


def thinner(state: ChainState, since: int) -> ChainState:
    """The state with fewer times in its closed segments from a number on, where that costs nothing.

    Two neighbouring intervals become one where together they are well within the resolution of the
    kernels. What is then left open joins the slack.
    """
    law, segments, totals = state.mixing.law, list(state.segments), state.totals
    span = segments[-1].times[-1] - segments[0].times[0]
    if not np.isfinite(state.mixing.resolution):
        return state
    limit = min(_SPARE * state.mixing.resolution, float(span) / _affordable(law))
    found: list[Segment] = []
    for segment in segments[since:-1]:
        thin, totals = _thinned(segment, law, limit, totals)
        found.append(thin)
    if all(a is b for a, b in zip(found, segments[since:-1], strict=True)):
        return state
    packed = _packed([*found, segments[-1]])
    return state.replace(segments=(*segments[:since], *packed), totals=totals)


def _thinned(segment: Segment, law: Law, limit: float, totals: Totals) -> tuple[Segment, Totals]:
    gaps = np.diff(segment.times)
    first = np.array(_pairs_within(gaps, limit), int)
    if len(first) < segment.count // 4:
        return segment, totals
    bridge = law.bridge(gaps[first], gaps[first + 1])
    thin, of_b = thinned(segment, first, bridge)
    owns = law.owns[:, : law.size]
    left = np.einsum("mcij,mji,qi,qj->cq", of_b, bridge.spread, owns, owns, optimize=True)
    return thin, totals.with_slack(left)


def _pairs_within(gaps: Times, limit: float) -> list[int]:
    """The first of each two neighbouring intervals that become one."""
    found, k = [], 0
    while k + 1 < len(gaps):
        if gaps[k] + gaps[k + 1] <= limit:
            found.append(k)
            k += 1
        k += 1
    return found


def _packed(segments: list[Segment]) -> list[Segment]:
    """Segments with short ones joined to the next."""
    found: list[Segment] = []
    for segment in segments:
        if found and found[-1].count + segment.count <= SIZE:
            segment = joined_segments([found.pop(), segment])
        found.append(segment)
    return found
