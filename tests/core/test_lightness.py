"""Which task types are light."""

from __future__ import annotations

import pytest

from agentgate.core.lightness import SAMPLES, Lightness


def lightness_of(**medians: float) -> Lightness:
    lightness = Lightness(64)
    for task_type, duration_s in medians.items():
        lightness.add(task_type, duration_s)
    return lightness


def test_without_any_measure_everything_is_light() -> None:
    """Nothing known about an agent: any type may try first."""
    assert Lightness(64).is_light("confirm")


@pytest.mark.parametrize(
    ("medians", "light"),
    [
        ({"a": 1.0}, {"a"}),
        ({"a": 1.0, "b": 9.0}, {"a"}),
        ({"a": 1.0, "b": 9.0, "c": 2.0}, {"a", "c"}),
        ({"a": 1.0, "b": 1.0}, {"a", "b"}),
    ],
)
def test_about_half_of_the_types_are_light(medians: dict[str, float], light: set[str]) -> None:
    """B3: the lightest first: types at or below the median over the agent's types; unknown ones are not light."""
    lightness = lightness_of(**medians)
    assert {task_type for task_type in [*medians, "unknown"] if lightness.is_light(task_type)} == light


def test_a_type_is_measured_by_its_last_answers() -> None:
    """An outlier does not move a type, a lasting change does."""
    lightness = lightness_of(a=1.0, b=5.0)
    lightness.add("a", 100.0)
    assert lightness.is_light("a")
    for _ in range(SAMPLES):
        lightness.add("a", 100.0)
    assert not lightness.is_light("a")
    assert lightness.is_light("b")
