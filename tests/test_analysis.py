"""What text becomes: the same terms for documents and queries, in every script."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.analysis import FUNCTION_WORD_WEIGHT, MAX_TERM_LENGTH, analyze, analyze_query, fold

MANY = settings(max_examples=500)
PARTS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8)
IDENTIFIERS = st.lists(PARTS, min_size=1, max_size=5).flatmap(
    lambda parts: st.lists(st.sampled_from("-_./:"), min_size=len(parts) - 1, max_size=len(parts) - 1).map(
        lambda separators: "".join(part + mark for part, mark in zip(parts, [*separators, ""], strict=True))
    )
)


def test_prose_becomes_english_stems() -> None:
    assert analyze("Retries were failing") == analyze("retry were failed")


@pytest.mark.parametrize(
    ("identifier", "queries"),
    [
        ("retry_backoff_ms", ["retry_backoff_ms", "retry", "backoff", "ms", "retries"]),
        ("camelCase", ["camelCase", "camelcase", "camel", "case"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("src/app/main.py", ["src/app/main.py", "src", "app", "main.py", "main", "py"]),
        (r"C:\Users\me", [r"C:\Users\me", "users", "me"]),
        ("--no-cache", ["--no-cache", "no-cache", "cache"]),
        ("E0277", ["E0277", "e0277"]),
        ("v2.5.1", ["v2.5.1", "2.5.1"]),
        ("pve-01", ["pve-01", "pve", "01"]),
        ("host:8080", ["host:8080", "host", "8080"]),
        ("2026-04-22T10:00", ["2026-04-22T10:00", "2026-04-22T10", "2026"]),
        ("user@example.org", ["user@example.org", "user", "example.org"]),
    ],
)
def test_an_identifier_is_found_whole_and_in_parts(identifier: str, queries: list[str]) -> None:
    terms = set(analyze(f"see {identifier}, please"))
    assert [query for query in queries if not analyze_query(query).keys() <= terms] == []


def test_an_identifier_found_whole_counts_more_than_its_parts_strewn_over_a_text() -> None:
    asked = analyze_query("retry_backoff_ms").keys()
    assert len(asked & set(analyze("retry_backoff_ms"))) > len(asked & set(analyze("retry, then backoff, in ms")))


def test_c_plus_plus_c_sharp_and_c_are_three_things() -> None:
    assert len({tuple(analyze(text)) for text in ("C", "C++", "C#")}) == 3


@pytest.mark.parametrize(
    ("written", "plain"),
    [("Café", "cafe"), ("ﬁle", "file"), ("ＡＢＣ１２", "abc12"), ("Ζεύς", "ζευς"), ("Straße", "strasse"), ("ё", "е")],
)
def test_accents_widths_and_case_are_folded(written: str, plain: str) -> None:
    assert analyze(written) == analyze(plain)


@pytest.mark.parametrize("text", ["Überprüfung", "한국어 데이터", "パスワード", "عَرَبِيّ", "हिन्दी", "ẹ̀kọ́"])
def test_composed_and_decomposed_text_is_the_same(text: str) -> None:
    assert analyze(unicodedata.normalize("NFD", text)) == analyze(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("张伟喜欢火锅", "张伟"),  # B3
        ("张伟喜欢火锅", "火锅"),  # B3
        ("微信数据目录在 D 盘", "微信"),  # B1
        ("データベースのポートは5433です", "ポート"),
        ("데이터베이스 포트는 5433", "포트"),
        ("รหัสผ่านของฐานข้อมูล", "ฐานข้อมูล"),
        ("ທີ່ຢູ່ຂອງຖານຂໍ້ມູນ", "ຖານຂໍ້ມູນ"),
        ("web_server的桌面watchdog单层ppid", "watchdog"),  # B2
        ("web_server的桌面watchdog单层ppid", "ppid"),  # B2
        ("web_server的桌面watchdog单层ppid", "桌面"),  # B2
        ("张伟喜欢火锅", "锅"),
        ("पासवर्ड हर महीने बदलता है", "पासवर्ड"),
        ("كلمة المرور في الخزنة", "المرور"),
        ("הסיסמה בכספת", "בכספת"),
        ("Пароль хранится в сейфе", "пароль"),
        ("Ο κωδικός είναι στο χρηματοκιβώτιο", "κωδικος"),
    ],
)
def test_a_word_is_found_inside_a_text_of_its_script(document: str, query: str) -> None:
    assert analyze_query(query).keys() <= set(analyze(document))


def test_a_query_of_several_characters_does_not_search_single_ones() -> None:
    assert set(analyze_query("火锅店")) == {"火锅", "锅店"}


def test_function_words_weigh_less_than_the_words_that_matter() -> None:
    weights = analyze_query("what is the port of the database")
    assert {term for term, weight in weights.items() if weight == 1.0} == {"port", "databas"}
    assert weights["what"] == FUNCTION_WORD_WEIGHT


@pytest.mark.parametrize("written", ["it's", "it\u2019s"])
def test_contractions_count_as_their_word(written: str) -> None:
    assert analyze(written) == ["it"]


def test_a_negation_survives_contraction() -> None:
    assert analyze("don't") == analyze("don\u2019t") == ["dont"]


def test_a_run_without_end_is_cut_in_documents_and_queries_alike() -> None:
    run = "x" * 10_000
    assert analyze(run) == ["x" * MAX_TERM_LENGTH] == list(analyze_query(run))


@pytest.mark.parametrize("text", ["", " \n\t", "!?…", "😀🎉", "\0", "\ud800"])
def test_text_without_words_has_no_terms(text: str) -> None:
    assert analyze(text) == []


@MANY
@given(st.text(st.characters(exclude_categories=[])))
def test_terms_are_short_and_hold_no_white_space_whatever_the_text(text: str) -> None:
    assert all(term and not any(map(str.isspace, term)) and len(term) <= MAX_TERM_LENGTH for term in analyze(text))


@MANY
@given(st.text())
def test_a_text_is_found_by_itself(text: str) -> None:
    assert analyze_query(text).keys() <= set(analyze(text))


@MANY
@given(st.text(), st.text())
def test_a_text_is_found_by_each_of_its_lines(first: str, second: str) -> None:
    assert analyze_query(first).keys() <= set(analyze(f"{first}\n{second}"))


@MANY
@given(IDENTIFIERS)
def test_an_identifier_is_found_in_prose(identifier: str) -> None:  # C2
    assert analyze_query(identifier).keys() <= set(analyze(f"Set ({identifier}), then restart."))


@MANY
@given(st.lists(PARTS, min_size=1, max_size=5), st.sampled_from("-_./:"))
def test_an_identifier_is_found_by_each_of_its_parts(parts: list[str], separator: str) -> None:
    terms = set(analyze(separator.join(parts)))
    assert all(analyze_query(part).keys() <= terms for part in parts)


@MANY
@given(st.text(string.ascii_lowercase + " ", max_size=60))
def test_case_does_not_matter(text: str) -> None:
    assert analyze(text) == analyze(text.upper())


@MANY
@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)
