"""The fixtures of the tests of streamgp. Shapes and types of the baselines are checked too."""

from tests.conftest import install_import_hook, unchecked  # noqa: F401 (a fixture)

install_import_hook(
    ["streamgp_lab.baselines", "streamgp_lab.problem", "streamgp_lab.scores"], "beartype.beartype"
)
