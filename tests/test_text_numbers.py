from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indexes.text_numbers import id_numbers, ids_of, kind

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=50)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_an_id_comes_back_from_its_numbers_or_is_said_to_have_none(ids: list[str]) -> None:
    numbers = zip(*(id_numbers(id_) for id_ in ids), strict=True)
    for id_, found in zip(ids, ids_of(list(numbers)), strict=True):
        assert found in (id_, "")
        assert found == id_ or len(id_.encode()) > 40 or id_.endswith("\0")


def test_a_document_without_numbers_has_no_id() -> None:
    assert ids_of([[None]] * 5) == [""]


@given(TEXTS, TEXTS, st.booleans())
def test_records_are_of_a_kind_where_they_have_the_same_values(one: str, other: str, archived: bool) -> None:
    first = kind({"project": one, "user": other, "archived": archived, "id": "a"}, ("project", "user", "archived"))
    assert 0 <= first < 2**64
    assert first == kind({"archived": archived, "user": other, "project": one}, ("project", "user", "archived"))
    assert (first == kind({"archived": archived, "user": one, "project": other}, ("project", "user", "archived"))) == (
        one == other
    )
    assert first != kind({"archived": not archived, "user": other, "project": one}, ("project", "user", "archived"))
