"""Rows over time: what `streamgp-lab bench over_time` measures, one topic after the other."""

from streamgp_lab.races.over_time import files, joining, million, speed, traps
from streamgp_lab.races.topics import Topic, Topics

TOPICS = Topics(
    "over_time",
    __package__,
    "Rows over time: speed, files, what traps cost, and what joining loses, beside an earlier "
    "revision (--against ca6adae); --full adds a million rows.",
    "CPU times of processes on one thread, versions in turns, medians of all repeats. A Kalman "
    "step is one of a filter of seven states in NumPy, in the same process.",
    (
        Topic("speed", speed.BARS, is_repeated=True),
        Topic("files", files.BARS),
        Topic("traps", traps.BARS),
        Topic("joining", joining.BARS, is_shared=False),
    ),
    longest=(Topic("million", million.BARS, is_shared=False),),
)
BENCHMARK = TOPICS.benchmark
