"""What holds for a store in a folder holds on an object store too: the same tests, run over it."""

from __future__ import annotations

from tests import test_outcomes, test_store

_SAME = {
    test_outcomes: (
        "a_report_returns_the_memory_with_its_new_score",
        "a_report_with_an_unknown_id_records_nothing",
        "reports_outlive_the_store_that_took_them_and_its_compaction",
    ),
    test_store: (
        "a_beginning_that_fits_two_memories_is_refused_and_names_them",
        "a_closed_store_says_so_and_may_be_closed_again",
        "a_correction_archives_what_it_corrects_and_remembers_it",
        "a_forgotten_memory_cannot_be_changed",
        "a_forgotten_memory_said_again_is_a_new_one",
        "a_list_narrows_by_category_project_and_tag",
        "a_memory_outlives_the_store_that_wrote_it",
        "an_added_memory_is_returned_as_it_is_stored",
        "an_edit_of_the_text_keeps_the_id_and_is_found_by_both_indexes",
        "an_edit_to_the_text_of_another_memory_is_refused",
        "archiving_can_be_undone",
        "many_memories_are_returned_in_their_order",
        "one_bad_memory_of_many_keeps_all_of_them_out",
        "saying_an_archived_memory_again_makes_it_current",
        "stats_count_what_is_there",
        "the_same_text_again_is_the_same_memory",
        "upkeep_changes_nothing_that_is_found",
        "what_was_written_while_the_model_failed_gets_its_vector_later",
    ),
}

for module, names in _SAME.items():
    globals().update({f"test_{name}": getattr(module, f"test_{name}") for name in names})
