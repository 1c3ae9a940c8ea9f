"""A place for backups and an empty warehouse, in memory, new for each test."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture
def place() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def elsewhere() -> str:
    return f"memory://{uuid.uuid4().hex}"
