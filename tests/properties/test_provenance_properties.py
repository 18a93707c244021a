"""However claims come in, none is lost and the strongest is in force."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from affiant_core.provenance import ProvenanceChain, ProvenanceTag
from affiant_core.vocabulary import ProvenanceSource
from affiant_core.wire import read
from tests.properties.strategies import chains, instants, modest, tags


def strength(tag):
    return tag.confidence, -tag.source.rank


def claims(chain):
    return sorted(tag.to_json_string() for tag in (chain.current, *chain.prior))


@modest
@given(tags, st.lists(tags, max_size=5))
def test_nothing_is_dropped(first, others):
    """PV-1: a chain holds every claim that was ever merged into it."""
    chain = reduce(ProvenanceChain.merge, others, ProvenanceChain.of(first))
    assert claims(chain) == sorted(tag.to_json_string() for tag in (first, *others))


@modest
@given(tags, st.lists(tags, max_size=5))
def test_the_current_claim_is_a_maximum(first, others):
    """PV-1: no displaced claim is stronger than the one in force, and the first of the strongest is in force."""
    chain = reduce(ProvenanceChain.merge, others, ProvenanceChain.of(first))
    assert strength(chain.current) == max(map(strength, (first, *others)))
    assert chain.current == max((first, *others), key=strength)


@modest
@given(chains, tags)
def test_the_loser_is_at_the_head(chain, challenger):
    """PV-1: of the two that contest, one is in force and the other is the newest of prior; the rest is untouched."""
    merged = chain.merge(challenger)
    assert {merged.current.to_json_string(), merged.prior[0].to_json_string()} == {
        chain.current.to_json_string(),
        challenger.to_json_string(),
    }
    assert merged.prior[1:] == chain.prior


@modest
@given(tags, instants)
def test_equal_claims_keep_the_incumbent(incumbent, at):
    """PV-1: a claim that is as strong as the one in force does not displace it."""
    challenger = incumbent.model_copy(update={"note": "another", "at": at})
    assert ProvenanceChain.of(incumbent).merge(challenger).current is incumbent
    assert ProvenanceChain.of(challenger).merge(incumbent).current is challenger


@modest
@given(tags, tags)
def test_at_most_one_of_two_beats_the_other(one, other):
    """PV-1: the contest has one winner whichever claim came first, unless they are equally strong."""
    assert not (one.beats(other) and other.beats(one))
    assert (one.beats(other) or other.beats(one)) is (strength(one) != strength(other))


@modest
@given(st.sampled_from(ProvenanceSource), st.floats() | st.integers(-5, 5), instants)
def test_confidence_is_within_bounds(source, confidence, at):
    """PV-1: whatever is claimed, a tag's confidence is within 0 and 1, 0 under Empty, and unchanged if it was fit."""
    tag = ProvenanceTag(source=source, confidence=confidence, at=at)
    assert 0 <= tag.confidence <= 1
    if source is ProvenanceSource.EMPTY:
        assert tag.confidence == 0
    elif 0 <= confidence <= 1:
        assert tag.confidence == confidence


@modest
@given(chains, chains)
def test_superseding_keeps_both_histories_in_order(older, newer):
    """REFERENCE 4: all of the newer chain on top of all of the older."""
    whole = older.supersede_with(newer)
    assert (whole.current, *whole.prior) == (newer.current, *newer.prior, older.current, *older.prior)


@modest
@given(chains)
def test_a_chain_survives_the_wire(chain):
    """SR-3: a chain that was made in Python passes the strict reading."""
    assert read(ProvenanceChain, chain.to_json_string()) == chain
