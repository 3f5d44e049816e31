"""Fixtures of the fault tests, and how long they go on: `pytest tests/faults --kills 5000`."""

from __future__ import annotations

import pytest

KILLS = 210


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of processes to kill; more make a longer soak of the write path."""
    parser.addoption(
        "--kills", type=int, default=KILLS, help="how many writers the kill test kills"
    )


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    # The option is unknown when pytest started elsewhere and met this directory on its way.
    wanted: int = request.config.getoption("--kills", default=KILLS)
    return wanted


@pytest.fixture
def thorough(kills: int) -> bool:
    """Whether other faults too are to be tried at more moments than by default."""
    return kills > KILLS
