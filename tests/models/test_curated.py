"""The list to begin with: whole, in order, and honest about what was tested."""

from __future__ import annotations

from datetime import date

from models.curated import curated
from models.download.safe_path import safe_parts


def test_the_list_covers_what_it_should():
    known = curated()
    assert date.fromisoformat(known.date).year >= 2026
    assert known.source
    sizes = [model.n_params for model in known.models]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.6e9
    assert sizes[-1] > 110e9
    assert {model.kind for model in known.models} == {"dense", "moe"}
    assert len({model.repo_id for model in known.models}) == len(known.models)


def test_every_entry_is_consistent():
    for model in curated().models:
        assert len(safe_parts(model.repo_id)) == 2
        assert (model.n_active_params < model.n_params) == (model.kind == "moe")
        assert model.quantisation
        assert model.licence
        assert not model.is_tested
        if model.draft is not None:
            assert len(safe_parts(model.draft.repo_id)) == 2
            assert model.draft.repo_id != model.repo_id
