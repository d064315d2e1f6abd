"""The fixtures of the tests of streamgp. Shapes and types of the baselines are checked too."""

from tests.conftest import (  # noqa: F401 (it also sets the environment of JAX)
    _double_precision,
    _room_for_programs,
    fully_compiled,
    install_import_hook,
    unchecked,
)

install_import_hook(
    ["streamgp_lab.baselines", "streamgp_lab.problem", "streamgp_lab.scores"], "beartype.beartype"
)
