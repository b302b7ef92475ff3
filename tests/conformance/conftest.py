"""The suites are shipped code; pytest explains their assertions as it does those of a test file."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("agentgate.testing.conformance")
