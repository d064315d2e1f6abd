"""The Python of the pages about Spark runs: all blocks of a page, as one script."""

import pytest

from tests.quick_start import blocks
from tests.unit.test_readme import WITH_SPARK, named, ran


@pytest.mark.parametrize("page", WITH_SPARK, ids=named)
def test_a_page_runs(page, tmp_path):
    ran(["-c", "".join(blocks(page.read_text()))], tmp_path)
