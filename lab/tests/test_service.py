"""Checks of the service that are short enough for tests."""

import pytest

pytest.importorskip("fastapi", reason="needs streamgp[service]")
pytest.importorskip("confluent_kafka", reason="needs streamgp[kafka]")

from streamgp_lab.cli import main


def test_a_killed_service_loses_nothing_and_learns_nothing_twice(capsys):
    main(["check", "service_kills", "--kills", "12"])
    said = capsys.readouterr().out
    assert "the models are the same, byte for byte" in said
    assert "messages were learned once" in said
