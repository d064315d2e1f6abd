"""Format 2, of the versions that mixed what all channels said into one site, made format 3.

There were no mean functions, scales were not learned, and all that stays so. What each channel said
can no longer be told apart. So the site stays mixed as it was, as the part that is `merged`.

The noise of a lone channel was learned exactly, from numbers kept beside the site. There what the
channel said is known but for rounding, and its noise goes on being learned as if all data were
still there.
"""

import itertools

import numpy as np

from streamgp.persistence.documents import Arrays, Document, Tensors, instance, instances, tuple_of

_POSITIVE, _REAL, _FROZEN = "streamgp.Positive", "streamgp.Real", "streamgp.Frozen"
_FREE = {_POSITIVE: "log_value", _REAL: "number"}  # the field with what may be learned
_NORMAL = ("streamgp.Gaussian", "streamgp.LogNormal")


def migrated(document: Document, tensors: Tensors) -> tuple[Document, Tensors]:
    """A file of format 2 as one of format 3.

    Args:
        document: The file's document.
        tensors: The file's arrays.

    Returns:
        Document and arrays of format 3.
    """
    contents = {**document["contents"], "mean": None}
    progress = contents["progress"]
    if progress["fields"].get("state") is not None:
        old = _FromFormat2(contents, tensors)
        contents["progress"] = instance(
            progress["class"], {**progress["fields"], "state": old.state()}
        )
        tensors = old.tensors
    return {**document, "contents": contents}, tensors


class _FromFormat2(Arrays):
    """A state of format 2 as one of format 3, and the arrays of both."""

    def __init__(self, contents: Document, tensors: Tensors):
        super().__init__(tensors)
        progress = contents["progress"]["fields"]
        seen = dict(progress["seen"]["dict"])
        names = [name for name, _ in contents["channels"]["dict"]]
        self.fields: Document = progress["state"]["fields"]
        self.channels: list[Document] = self.fields["model"]["fields"]["channels"]["tuple"]
        self.seen = np.array([seen[name] for name in names], float)
        self.is_factorised = contents["learner"]["fields"].get("factorised", False)
        given = dict(contents["mixing"]["dict"])
        has_fixed_scale = [
            name in given or (contents["plain"] and name == names[0]) for name in names
        ]
        self.is_to_start = (self.seen == 0) & ~np.array(has_fixed_scale)

    def state(self) -> Document:
        """The state."""
        noise = self._lone_noise()
        made = {
            "model": self._model(),
            "points": self.fields["points"],
            "past": self._past(noise),
            "memory": self._memory(),
            "heard": self.add(self._heard()),
            "merged": self._merged() if noise is None else None,
        }
        return instance("streamgp.State", made)

    def _heard(self) -> np.ndarray:
        """The observations of each channel: if some have faded, then all in the same part."""
        return self.seen * (self.fields["count"] / max(np.sum(self.seen), 1.0))

    # -- the model -------------------------------------------------------------------------------

    def _model(self) -> Document:
        old = self.fields["model"]
        channels = map(self._channel, self.channels, self.is_to_start)
        return instance(old["class"], {**old["fields"], "channels": tuple_of(channels)})

    def _channel(self, channel: Document, is_to_start: bool) -> Document:
        """The channel with no mean functions."""
        old, spread = channel["fields"], np.zeros((self._latents(channel), 0))
        made = {
            "scale": self._learned(old["scale"]) if is_to_start else old["scale"],
            "mean": instance("streamgp.MeanSum", {"parts": tuple_of([])}),
            "spread": instance(_FROZEN, {"number": self.add(spread)}),
        }
        return instance(channel["class"], {**old, **made})

    def _latents(self, channel: Document) -> int:
        """The number of its latent parameters."""
        return len(self.read(channel["fields"]["scale"]["fields"]["number"]))

    def _learned(self, scale: Document) -> Document:
        """A scale that is to be learned, as channels have it that start now.

        A channel without data is made anew when its first data come, and then it has one.
        """
        number = self.add(np.log(self.read(scale["fields"]["number"])))
        return instance(_POSITIVE, {"log_value": number, "log_centre": number, "spread": 1.5})

    def _memory(self) -> Document:
        """What was remembered, with room for the scales that are to be learned."""
        old = self.fields["memory"]
        gradient, precision = (self.read(old["fields"][key]) for key in ("gradient", "precision"))
        free = [self._free(channel) for channel in self.channels]
        # Channels come last in the free vector, and of a channel its scale does.
        ends = len(gradient) - np.cumsum([0, *free[:0:-1]])[::-1]
        latents = [self._latents(channel) for channel in self.channels]
        places = np.repeat(ends, np.where(self.is_to_start, latents, 0))
        wide = np.insert(np.insert(precision, places, 0.0, axis=0), places, 0.0, axis=1)
        made = {"gradient": np.insert(gradient, places, 0.0), "precision": wide}
        return instance(old["class"], {key: self.add(array) for key, array in made.items()})

    def _free(self, channel: Document) -> int:
        """How many of its numbers could be learned."""
        parts = [part for part in instances(channel) if part["class"] in _FREE]
        return sum(self.read(part["fields"][_FREE[part["class"]]]).size for part in parts)

    # -- what data said --------------------------------------------------------------------------

    def _site(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        old = self.fields["site"]["fields"]
        linear, precision = (
            [*map(self.read, old[key]["tuple"])] for key in ("linear", "precision")
        )
        return linear, precision

    def _merged(self) -> Document:
        """The site with a part for the weights of mean functions, of which there are none."""
        linear, precision = self._site()
        if self.is_factorised:
            linear.append(np.zeros(0))
            precision.append(np.zeros((0, 0)))
        return instance("streamgp.Site", self._tuples(linear, precision))

    def _past(self, noise: float | None) -> Document:
        """What the only channel said at unit noise, if its noise is given; else nothing."""
        linear, precision = self._no_sums()
        channels, pairs = len(self.channels), len(precision[0])
        count, energy = np.zeros((2, channels))
        if noise is not None:
            (whole,), (square,) = self._site()
            linear[0][0], precision[0][0] = noise**2 * whole, noise**2 * square
            count[0], energy[0] = self.fields["count"], self.fields["energy"]
        counts = {
            "slack": np.zeros((pairs, len(linear) - 1)),  # a part of the energy so far
            "count": count,
            "energy": energy,
        }
        made = {key: self.add(array) for key, array in counts.items()}
        return instance("streamgp.Past", {**self._tuples(linear, precision), **made})

    def _no_sums(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Sums over no rows, per part: the latent functions and, last, no mean functions."""
        latents = [self._latents(channel) for channel in self.channels]
        outputs, pairs = sum(latents), sum(j * (j + 1) // 2 for j in latents)
        widths = [*(len(self.read(z)) for z in self.fields["points"]["tuple"]), 0]
        two = itertools.combinations_with_replacement(widths, 2)
        between = zip(widths, widths, strict=True) if self.is_factorised else two
        linear = [np.zeros((outputs, width)) for width in widths]
        return linear, [np.zeros((pairs, *shape)) for shape in between]

    def _tuples(self, linear: list[np.ndarray], precision: list[np.ndarray]) -> Document:
        return {
            "linear": tuple_of(map(self.add, linear)),
            "precision": tuple_of(map(self.add, precision)),
        }

    def _lone_noise(self) -> float | None:
        """The noise of the only channel, if it was kept exactly; None otherwise.

        That was so if nothing else of the channel could be learned. Where the channel is not just
        the latent function, but a given multiple or several of them, its site stays as it is.
        """
        own = self.channels[0]["fields"]
        likelihood = own["likelihood"]
        numbers = likelihood["fields"]
        if len(self.channels) > 1 or likelihood["class"] not in _NORMAL or numbers.get("error"):
            return None
        if numbers["noise"]["class"] != _POSITIVE:
            return None
        if not (self._is_one(own["weights"]) and self._is_one(own["scale"])):
            return None
        return float(np.exp(self.read(numbers["noise"]["fields"]["log_value"])))

    def _is_one(self, parameter: Document) -> bool:
        """Whether it is the fixed number one, alone."""
        if parameter["class"] != _FROZEN:
            return False
        return self.read(parameter["fields"]["number"]).ravel().tolist() == [1.0]
