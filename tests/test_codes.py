from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from indexes.codes import Codes, greatest

FINITE = st.floats(-1, 1, width=32)


def _random(rows: int, dimension: int = 384) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((rows, dimension)).astype(np.float32)


def test_cosines_by_bytes_are_those_of_the_vectors_but_for_two_thousandths() -> None:
    vectors = _random(500)
    query = vectors[7] + 0.5 * _random(1)[0]
    exact = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    assert Codes.of(vectors).cosines(query) == pytest.approx(exact, abs=2e-3)


@given(arrays(np.float32, (3, 8), elements=FINITE))
def test_a_vector_is_nearest_to_itself_whatever_its_length(vectors: np.ndarray) -> None:
    cosines = Codes.of(vectors).cosines(vectors[0])
    length = float(np.linalg.norm(vectors[0]))
    assert cosines[0] == pytest.approx(1.0 if length > 1e-3 else cosines[0], abs=2e-3)
    assert np.all(np.abs(cosines) <= 1.001)


def test_no_vectors_have_no_cosines() -> None:
    assert Codes.of(np.zeros((0, 8), np.float32)).cosines(np.ones(8, np.float32)).shape == (0,)


def test_joined_and_kept_rows_are_those_of_the_parts() -> None:
    vectors, query = _random(6), _random(1)[0]
    joined = Codes.joined([Codes.of(vectors[:2]), Codes.of(vectors[2:])])
    assert joined.cosines(query) == pytest.approx(Codes.of(vectors).cosines(query))
    odd = np.arange(6) % 2 == 1
    assert joined.kept(odd).cosines(query) == pytest.approx(Codes.of(vectors[odd]).cosines(query))


@given(
    st.lists(st.one_of(FINITE, st.just(-np.inf)), max_size=300).map(lambda found: np.array(found, np.float32)),
    st.integers(1, 40),
)
def test_the_greatest_values_are_found_in_order_and_minus_infinity_is_none(values: np.ndarray, count: int) -> None:
    finite = sorted((value for value in values.tolist() if value > -np.inf), reverse=True)
    assert values[greatest(values, count)].tolist() == finite[:count]
