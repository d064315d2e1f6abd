"""All comparisons, by name."""

from streamgp_lab.races.comparison import Claim
from streamgp_lab.races.comparisons import batches, channels, dimensions, samples
from streamgp_lab.races.growth import Curve
from streamgp_lab.races.start import Start, median

COMPARISONS = {
    module.COMPARISON.name: module.COMPARISON for module in (samples, batches, dimensions, channels)
}
ALONE = {
    "growth": "What an update of ours costs as the stream, M, D and Q grow, with exponents.",
    "start": "Importing streamgp, and the first update of a process.",
}


def growth_claims(curves: list[Curve]) -> list[Claim]:
    said = []
    for curve in curves:
        most = {"samples seen": 0.05, "M": 3.0}.get(curve.along)
        if most is None:
            continue
        holds = curve.exponent < most
        said.append(Claim(f"{curve.name}: exponent below {most}", f"{curve.exponent:.3f}", holds))
        if curve.along == "samples seen":
            flat = curve.memory_exponent
            said.append(Claim(f"{curve.name}: memory flat", f"exponent {flat:.3f}", flat < 0.05))
    return said


def start_claims(starts: dict[str, list[Start]]) -> list[Claim]:
    cold, warm = median(starts["cold cache"]), median(starts["warm cache"])
    limits = [
        ("importing streamgp beyond jax, at most 1.5 s", cold.streamgp, 1.5),
        ("first update, cold cache, at most 8 s", cold.update, 8.0),
        ("first update, warm cache, at most 3 s", warm.update, 3.0),
    ]
    return [Claim(sentence, f"{took:.2f} s", took <= most) for sentence, took, most in limits]
