"""Cells: past rows as local averages, which can be seen through any features.

Sums over rows (`past`) are tied to the points and kernels through which the rows were seen. Early
on, points are few and lengthscales are guesses, and early rows would stay as they were seen then.
Rows are therefore kept a second time, without features: as cells, each with a mean input and the
sum of its rows' sites. There is a fixed number of them, however long the stream is. Where kernels
or points change, sums are made anew from cells (`seen_cells`).
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch, Group, Rows
from streamgp.inference.past import Said, at_unit_noise, counted
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import MultiTaskGP
from streamgp.registry import storable

_WITHIN = ("path", "varied", "explained")  # what `scatter` keeps of rows within a cell
_OF_CELLS = ("x", "channel", "basis", "linear", "precision", *_WITHIN)  # others are of channels


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Averages of past rows that lie near each other.

    Sites are at unit noise where noise is a common factor of them, as in `Past`. J is the largest
    number of latent parameters of any channel; channels with fewer have zeros in their place.

    Attributes:
        x: The mean input of each cell.
        channel: The channel of each cell.
        basis: The mean of the channel's mean functions over the rows of each cell.
        linear: Σ b over the rows of each cell.
        precision: Σ P.
        path: The direction in which the function changed within each cell, times the change; see
            `scatter.Steps` for this field and the next two.
        varied: The square of that change.
        explained: The part of the energy that the change explained when cells were joined.
        count: The number of rows of each channel; of weighted rows, the sum of their weights.
        energy: Σ P⁻¹b² over the rows of each channel whose noise scales its sites.
    """

    x: Float[np.ndarray, "C P"]
    channel: Int[np.ndarray, " C"]
    basis: Float[np.ndarray, "C B"]
    linear: Float[np.ndarray, "C J"]
    precision: Float[np.ndarray, "C J J"]
    path: Float[np.ndarray, "C P"]
    varied: Float[np.ndarray, " C"]
    explained: Float[np.ndarray, " C"]
    count: Float[np.ndarray, " D"]
    energy: Float[np.ndarray, " D"]

    @classmethod
    def none(cls, model: MultiTaskGP, columns: int) -> "Cells":
        """No rows yet, for inputs of so many columns."""
        latents = max(channel.likelihood.latents for channel in model.channels)
        totals = np.zeros(len(model.channels))
        return cls(
            np.zeros((0, columns)), np.zeros(0, int), np.zeros((0, model.basis_size)),
            np.zeros((0, latents)), np.zeros((0, latents, latents)), np.zeros((0, columns)),
            np.zeros(0), np.zeros(0), totals, totals.copy(),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.x)

    @property
    def mass(self) -> Float[np.ndarray, " C"]:
        """How precisely each cell is observed."""
        return np.trace(self.precision, axis1=1, axis2=2)

    def arrays(self) -> list[np.ndarray]:
        """All numbers but the channels'."""
        names = ("x", "basis", "linear", "precision", *_WITHIN, "count", "energy")
        return [getattr(self, name) for name in names]

    def with_rows(self, said: Said) -> "Cells":
        """The same with the rows of a batch, each as a cell of its own."""
        batch, model, latents = said.setting.batch, said.setting.model, self.linear.shape[1]
        linear = np.zeros((batch.size, latents))
        precision = np.zeros((batch.size, latents, latents))
        count, energy = np.zeros_like(self.count), np.zeros_like(self.energy)
        for group, b, p in at_unit_noise(said):
            linear[group.rows, : group.latents] = b
            precision[group.rows, : group.latents, : group.latents] = p
            more = counted(model, group)
            count[group.channel] += more[0]
            energy[group.channel] += more[1]
        nothing = np.zeros(batch.size)
        new = Cells(
            batch.x, batch.channel, said.basis, linear, precision,
            np.zeros_like(batch.x), nothing, nothing, count, energy,
        )  # fmt: skip
        return self + new

    def __add__(self, other: "Cells") -> "Cells":
        """The cells of both."""
        cells = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in _OF_CELLS}
        return Cells(**cells, count=self.count + other.count, energy=self.energy + other.energy)

    def since(self, earlier: "Cells") -> "Cells | None":
        """The cells that came after those of an earlier state; None if cells were joined since."""
        begin = earlier.size
        if not all(
            np.array_equal(getattr(self, name)[:begin], getattr(earlier, name))
            for name in _OF_CELLS
        ):
            return None
        later = {name: getattr(self, name)[begin:] for name in _OF_CELLS}
        count, energy = self.count - earlier.count, self.energy - earlier.energy
        return Cells(**later, count=count, energy=energy)

    def taken(self, own: Int[np.ndarray, " c"]) -> "Cells":
        """Some of the cells; counts and energies stay those of all."""
        return dataclasses.replace(self, **{name: getattr(self, name)[own] for name in _OF_CELLS})

    def moved(self, model: MultiTaskGP, by: Float[np.ndarray, "C P"]) -> "Cells":
        """The same cells elsewhere; their mean functions change as they do there."""
        width = max(channel.likelihood.observation_dim for channel in model.channels)
        nothing, basis = np.zeros((self.size, width)), self.basis
        for sign, x in ((1, self.x + by), (-1, self.x)):
            batch = model.batch(Rows(x, nothing, self.channel))
            basis = basis + sign * batch.as_they_came(model.basis(batch))
        return dataclasses.replace(self, x=self.x + by, basis=basis)

    def scaled(self, part: float) -> "Cells":
        """What was said, with that part of its say."""
        names = ("linear", "precision", *_WITHIN, "count", "energy")
        return dataclasses.replace(self, **{name: part * getattr(self, name) for name in names})

    def with_channel(self, latents: int, basis_size: int) -> "Cells":
        """The same with a further channel, of which nothing is known.

        Args:
            latents: The number of its latent parameters.
            basis_size: The largest number of mean functions of any channel, the new one included.
        """
        more = (0, max(latents - self.linear.shape[1], 0))
        return dataclasses.replace(
            self,
            basis=np.pad(self.basis, ((0, 0), (0, basis_size - self.basis.shape[1]))),
            linear=np.pad(self.linear, ((0, 0), more)),
            precision=np.pad(self.precision, ((0, 0), more, more)),
            count=np.append(self.count, 0.0),
            energy=np.append(self.energy, 0.0),
        )

    # -- as rows ---------------------------------------------------------------------------------

    def batch(self, model: MultiTaskGP) -> Batch:
        """The cells as rows that are sorted for the algebra. What they observed is not in it."""
        width = max(channel.likelihood.observation_dim for channel in model.channels)
        return model.batch(Rows(self.x, np.zeros((self.size, width)), self.channel))

    def by_channel(
        self, batch: Batch
    ) -> Iterator[tuple[Group, Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]]:
        """The sites of each channel's cells, at unit noise, in the order of `batch`."""
        for group in batch.groups:
            own, j = batch.order[group.rows], group.latents
            yield group, self.linear[own, :j], self.precision[own, :j, :j]

    def sites(self, model: MultiTaskGP, batch: Batch) -> RowSites:
        """The sites of all cells under the noises of a plain model, in the order of `batch`."""
        linear = np.empty(batch.flat_size)
        shapes = [(run.rows.stop - run.rows.start, run.latents) for run in batch.runs]
        precision = tuple(np.empty((count, j, j)) for count, j in shapes)
        for group, b, p in self.by_channel(batch):
            strength = model.channels[group.channel].likelihood.strength
            linear[group.flat] = strength * b.ravel()
            precision[group.run][group.within] = strength * p
        return RowSites(linear, precision)
