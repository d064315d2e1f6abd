import pytest

from tests.service.running import serving


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path / "models.db") as client:
        yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service for tests that do not disturb each other."""
    with serving(tmp_path_factory.mktemp("service") / "models.db") as client:
        yield client
