"""What must hold of the KV cache and all that is kept of texts, at any time: each function raises AssertionError."""

from __future__ import annotations

from collections.abc import Iterator

from core.kv_cache.prefix_tree import PrefixNode, PrefixTree, is_image
from core.kv_cache.segment_store import Segment, SegmentStore
from core.kv_cache.slot_table import SlotTable


def check_slots(table: SlotTable) -> None:
    """Hold slots, tree, store and llama.cpp's positions against each other."""
    check_tree(table.store.tree)
    n_idle = sum(slot.n_resident for slot in table.slots if slot.is_free)
    assert table.n_idle == n_idle, "the count of idle tokens is stale"
    for slot in table.slots:
        text = slot.resident
        # Where rows share positions, the next position after an image is not the last one plus 1.
        if not (slot.n_resident and text.shares_positions and is_image(int(slot.text[-1]))):
            next_position = table.memory.cells.last_position(slot.id) + 1
            assert next_position == text.position(slot.n_resident), f"slot {slot.id} holds something else"
        assert slot.n_resident <= text.size
        if slot.node is None:
            assert slot.is_free
            assert not slot.n_resident
            continue
        assert slot.end <= text.size
        assert slot.n_resident <= slot.end or not slot.is_free
        match = table.store.tree.match(text.known(slot.end))
        assert match.size == slot.end
        assert match.path[-1] is slot.node, "the tree has another text for a slot"
    check_store(table.store)


def nodes_of(tree: PrefixTree) -> Iterator[PrefixNode]:
    stack = [tree.root]
    while stack:
        yield (node := stack.pop())
        stack += node.children.values()


def check_tree(tree: PrefixTree) -> None:
    """Hold nodes against their children and the places that end there or pass."""
    for node in nodes_of(tree):
        ends = [place for place in node.places if place.node is node]
        if node is not tree.root:
            assert len(node.tokens), "an edge without tokens"
            assert node.n_ends == len(ends), f"{len(ends)} places end here, not {node.n_ends}"
            assert node.n_ends or len(node.children) > 1, "nothing ends or branches here"
            assert all(place.start < node.end for place in node.places), "a place begins behind its node"
            assert all(place.end == node.end for place in ends)
        for token, child in node.children.items():
            assert child.parent is node
            assert child.start == node.end
            assert int(child.tokens[0]) == token
            passing = {place for place in child.places if place.start < node.end}
            assert node is tree.root or passing <= set(node.places), "a place that passes is not known above"
            assert all(place in child.places for place in passing)
        below = {place for child in node.children.values() for place in child.places}
        assert node is tree.root or all(place in below or place.node is node for place in node.places)


def check_store(store: SegmentStore) -> None:
    """Hold the segments against what is counted of them, and each against its parent."""
    segments = {place for node in nodes_of(store.tree) for place in node.places if isinstance(place, Segment)}
    in_ram = [segment for segment in segments if segment.blob is not None]
    on_disk = [segment for segment in segments if segment.is_on_disk or segment.is_pending]
    assert all(one.blob is None or one.blob.nbytes == one.n_bytes for one in in_ram)
    assert store.n_ram_bytes == sum(segment.n_bytes for segment in in_ram)
    assert store.n_ram_bytes <= store.ram_limit
    assert store.n_disk_bytes == sum(segment.n_bytes for segment in on_disk)
    for segment in segments:
        assert segment.blob is not None or segment.is_on_disk or segment.is_pending, "a segment that is nowhere"
        assert segment.node is not None
        assert segment.end == segment.start + len(segment.tokens) == segment.node.end
        parent = segment.parent
        assert segment.children <= segments
        if parent is None:
            assert segment.start == 0 or segment.is_whole, "a segment without a beginning"
            continue
        assert parent in segments, "a segment that cannot be reached"
        assert segment in parent.children
        assert parent.start < segment.start <= parent.end
        if segment.is_on_disk:
            assert parent.is_on_disk or parent.is_pending, "a file that the next start could not reach"
