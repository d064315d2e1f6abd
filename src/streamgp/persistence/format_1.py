"""Format 1, of the versions that were built on JAX and had tinygp's kernels, made format 2."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamgp.errors import FileError, problem
from streamgp.persistence.documents import Arrays, Document, Tensors, instance, instances, tuple_of

_POSITIVE, _REAL, _FIXED = "streamgp.Positive", "streamgp.Real", "paramax.NonTrainable"
_PARAMETERS = {_POSITIVE, _REAL, _FIXED}
_COMBINED = {"tinygp.Sum": "streamgp.Sum", "tinygp.Product": "streamgp.Product"}
_CONSTANT, _SUBSPACE = "tinygp.Constant", "tinygp.transforms.Subspace"
# Parameters that stayed where they were if they were given as whole numbers.
_WHOLE = {"streamgp.Periodic": "period", "streamgp.RationalQuadratic": "alpha"}


def migrated(document: Document, tensors: Tensors) -> tuple[Document, Tensors]:
    """A file of format 1 as one of format 2.

    Args:
        document: The file's document.
        tensors: The file's arrays.

    Returns:
        Document and arrays of format 2.

    Raises:
        FileError: If the file has a kernel that there is no equal of any more.
    """
    rewriter = _FromFormat1(tensors)
    contents = {name: rewriter.value(part) for name, part in document["contents"].items()}
    if not contents.get("plain") and "latents" in contents:
        _keep_variances(contents["latents"])
    return {**document, "contents": contents}, rewriter.tensors


class _FromFormat1(Arrays):
    """Values of format 1 as those of format 2, and the arrays of both."""

    def __init__(self, tensors: Tensors):
        super().__init__(tensors)
        self._changed: dict[str, Callable[[Document], Document]] = {
            _POSITIVE: self._positive,
            _REAL: self._real,
            _FIXED: self._fixed,
            "streamgp.State": self._state,
        }

    def value(self, value: Any) -> Any:
        """Any value."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), None)
        if kind in ("tuple", "dict"):
            return {kind: self.value(value[kind])}
        if kind == "array":  # JAX's arrays are NumPy's now
            return {**value, "kind": "scalar" if value["kind"] == "scalar" else "numpy"}
        return self._instance(value) if kind == "class" else value

    def _instance(self, value: Document) -> Document:
        name, fields = value["class"], value["fields"]
        if name in self._changed:
            return self._changed[name](fields)
        if name.startswith("tinygp."):
            return self._kernel(value)
        made = {key: self.value(item) for key, item in fields.items()}
        if name in _WHOLE:
            made[_WHOLE[name]] = self._fixed_if_whole(made[_WHOLE[name]])
        return instance("streamgp.MultiTaskGP" if name == "streamgp.Generative" else name, made)

    # -- parameters ------------------------------------------------------------------------------

    def _positive(self, fields: Document) -> Document:
        centre = fields["log_centre"]["fields"]["tree"]  # it was kept as a fixed parameter
        made = {
            "log_value": self._numbers(fields["log_value"]),
            "log_centre": self._numbers(centre),
        }
        return instance(_POSITIVE, {**made, "spread": fields["spread"]})

    def _real(self, fields: Document) -> Document:
        made = {"number": self._numbers(fields["value"]), "spread": fields["spread"]}
        return instance(_REAL, made)

    def _fixed(self, fields: Document) -> Document:
        return instance("streamgp.Frozen", {"number": self._numbers(fields["tree"])})

    def _fixed_if_whole(self, value: Any) -> Any:
        whole = type(value) is int
        if isinstance(value, dict) and "array" in value:
            whole = self.tensors[value["array"]].dtype.kind in "iu"
        return self._fixed({"tree": value}) if whole else value

    def _numbers(self, value: Any) -> Document:
        """A number or an array as an array of double precision."""
        if type(value) in (int, float):
            return self.add(np.asarray(value, float))
        if isinstance(value, dict) and "float" in value:
            return self.add(np.asarray(float(value["float"])))
        if isinstance(value, dict) and "array" in value:
            return self.add(np.asarray(self.tensors[value["array"]], float))
        raise _no_equal("a fixed parameter that is not a number or an array")

    # -- the state -------------------------------------------------------------------------------

    def _state(self, fields: Document) -> Document:
        """There were slots for inducing points, some of them empty; now there are points only."""
        inducing, site = fields["inducing"]["fields"], fields["site"]["fields"]
        points, mask = self.read(inducing["points"]), self.read(inducing["mask"])
        linear, precision = self.read(site["linear"]), self.read(site["precision"])
        joint = len(linear) == 1
        blocks = [mask.ravel()] if joint else list(mask)
        kept = list(zip(blocks, linear, precision, strict=True))
        made = {
            "linear": tuple_of(self.add(own[block]) for block, own, _ in kept),
            "precision": tuple_of(self.add(own[np.ix_(block, block)]) for block, _, own in kept),
        }
        pairs = zip(points, mask, strict=True)
        return instance(
            "streamgp.State",
            {
                "model": self.value(fields["model"]),
                "points": tuple_of(self.add(own[filled]) for own, filled in pairs),
                "site": instance("streamgp.Site", made),
                "memory": self.value(fields["memory"]),
                "count": self._float(fields["count"]),
                "energy": self._float(fields["energy"]),
            },
        )

    def _float(self, value: Document) -> Any:
        number = float(self.read(value))
        return number if np.isfinite(number) else {"float": str(number)}

    # -- kernels of tinygp -----------------------------------------------------------------------

    def _kernel(self, value: Document) -> Document:
        """Sums, products, constants and choices of columns as ours; the rest as it is."""
        name, fields = value["class"], value["fields"]
        if name == _CONSTANT:
            number = self._fixed_if_whole(self.value(fields["value"]))
            return instance("streamgp.Constant", {"value": number})
        if _is_foreign(value):
            return self._adapted(value)
        if name in _COMBINED:
            pair = [self.value(fields[side]) for side in ("kernel1", "kernel2")]
            parts = [part for kernel in pair for part in _parts(kernel, _COMBINED[name])]
            return instance(_COMBINED[name], {"kernels": tuple_of(parts)})
        if name == _SUBSPACE:
            return self._on_columns(fields)
        raise _no_equal(f"{name} around a kernel of streamgp")

    def _on_columns(self, fields: Document) -> Document:
        axis = fields["axis"]
        axis = axis["tuple"] if isinstance(axis, dict) else axis
        columns = axis if isinstance(axis, list) else [axis]
        if not all(type(column) is int and column >= 0 for column in columns):
            raise _no_equal(f"{_SUBSPACE} of the columns {columns}")
        kernel = self.value(fields["kernel"])
        if any(size not in (1, len(columns)) for size in self._lengthscales(kernel)):
            raise _no_equal(f"{_SUBSPACE} around a kernel with a lengthscale for every column")
        return instance("streamgp.OnColumns", {"kernel": kernel, "columns": tuple_of(columns)})

    def _lengthscales(self, kernel: Document) -> Iterator[int]:
        """How many lengthscales each kernel within has, once they are known."""
        for part in instances(kernel):
            lengthscale = part["fields"].get("lengthscale")
            if isinstance(lengthscale, dict) and "class" in lengthscale:
                held = lengthscale["fields"]
                yield self.read(held.get("log_value", held.get("number"))).size

    def _adapted(self, value: Document) -> Document:
        """A kernel of tinygp's own as the adapter keeps it: its numbers, and the kernel."""
        kernel = self._foreign(value)
        programs = instance("streamgp.TinygpPrograms", {"kernel": kernel})
        leaves = tuple_of(self._leaves(kernel))
        return instance("streamgp.TinygpKernel", {"leaves": leaves, "programs": programs})

    def _foreign(self, value: Any) -> Any:
        """The same kernel of tinygp, with arrays and parameters of format 2."""
        is_instance = isinstance(value, dict) and "class" in value
        if not is_instance or value["class"] in _PARAMETERS:
            return self.value(value)
        fields = {key: self._foreign(item) for key, item in value["fields"].items()}
        return instance(value["class"], fields)

    def _leaves(self, kernel: Document) -> Iterator[Document]:
        """Its parameters, in order: numbers that are not whole, but for a polynomial's order."""
        for key, item in kernel["fields"].items():
            if isinstance(item, dict) and "class" in item:
                is_parameter = item["class"].startswith("streamgp.")
                yield from [item] if is_parameter else self._leaves(item)
            elif key != "order" and self._is_real(item):
                yield self._numbers(item)

    def _is_real(self, value: Any) -> bool:
        if isinstance(value, dict):
            name = value.get("array")
            return "float" in value or (name is not None and self.tensors[name].dtype.kind == "f")
        return type(value) is float


def _parts(kernel: Document, name: str) -> list[Document]:
    """The parts of a sum or a product of that name, or the kernel itself."""
    return kernel["fields"]["kernels"]["tuple"] if kernel["class"] == name else [kernel]


def _is_foreign(kernel: Document) -> bool:
    """Whether there are kernels of tinygp alone in it, and not only constants."""
    names = {part["class"] for part in instances(kernel)} - _PARAMETERS
    only_tinygp = all(name.startswith("tinygp.") for name in names)
    return only_tinygp and not names <= {*_COMBINED, _CONSTANT, _SUBSPACE}


def _keep_variances(latents: Any) -> None:
    """Where a kernel of some columns had no variance given, it was learned; now it would be one."""
    for part in latents if isinstance(latents, list) else [latents]:
        kernel = part["tuple"][0] if isinstance(part, dict) and "tuple" in part else part
        if isinstance(kernel, dict) and kernel.get("class") == "streamgp.OnColumns":
            while kernel["class"] == "streamgp.OnColumns":
                kernel = kernel["fields"]["kernel"]
            if kernel["fields"].get("variance", 1.0) is None:
                kernel["fields"]["variance"] = 1.0


def _no_equal(what: str) -> FileError:
    return FileError(
        problem(
            "a file of format 1 with kernels that this version has",
            what,
            "Make the model anew, or go on with it in the version of streamgp that wrote it.",
        )
    )
