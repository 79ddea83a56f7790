"""Which of the drafted tokens are verified."""

from __future__ import annotations

from collections.abc import Callable

from core.scheduler.draft import PENDING
from core.speculation.draft_tree import DraftTree
from core.speculation.policy.draft_length import best_cut
from core.speculation.policy.latency_bound import DraftCandidate
from core.speculation.policy.step_cost import StepCost
from core.speculation.proposer import DraftChain


def keep_what_pays(
    chains: list[DraftChain], prices: StepCost, gains_of: Callable[[DraftChain], list[float]], *, has_forked: bool
) -> None:
    """Keep the drafted tokens whose verification pays, over all chains together.

    ``gains_of`` says what verifying each token of a chain promises, in tokens. Of trees (``has_forked``), each leaf but
    one takes a branch.
    """
    tokens = sorted(
        (
            (reach / chain.caution, -node, chain, gain)
            for chain in chains
            for node, (reach, gain) in enumerate(zip(chain.reach, gains_of(chain), strict=True))
        ),
        key=lambda entry: (-entry[0], -entry[1]),
    )[: max(prices.room, 0)]
    if not has_forked:
        count = best_cut([gain for _, _, _, gain in tokens], prices)
        count = prices.within_latency(
            count, (DraftCandidate(chain.sequence.id, chain.reach[-node]) for _, node, chain, _ in tokens)
        )
        sizes: dict[int, int] = {}
        for _, _, chain, _ in tokens[:count]:
            sizes[id(chain)] = sizes.get(id(chain), 0) + 1
        for chain in chains:
            chain.truncate(sizes.get(id(chain), 0))
        return
    price = prices.rate * prices.branch_seconds
    nodes = branching([(chain, -node) for _, node, chain, _ in tokens], prices.n_branches, price)
    count = best_cut([worth for worth, _, _ in nodes], prices)
    count = prices.within_latency(
        count, (DraftCandidate(chain.sequence.id, chain.reach[node]) for _, chain, node in nodes)
    )
    keep(chains, [(chain, node) for _, chain, node in nodes[:count]])


def keep_evenly(
    chains: list[DraftChain], n_sequences: int, prices: StepCost, gains_of: Callable[[DraftChain], list[float]]
) -> None:
    """Keep equally many tokens of each chain, as many as pay; none where one of ``n_sequences`` has no chain.

    Of models with a running state llama.cpp evaluates sequences with different numbers of rows one after the other
    (``llama_batch_allocr::split_equal``): a row more for one of them is another pass over the weights.
    """
    most = min([len(chain.tokens) for chain in chains]) if len(chains) == n_sequences else 0
    gains = [gains_of(chain) for chain in chains]
    least = prices.step_seconds(prices.n_rows)
    depth, worth, promised = 0, 0.0, 0.0
    for size in range(1, min(most, prices.room // max(n_sequences, 1)) + 1):
        promised += sum([gain[size - 1] for gain in gains])
        left = promised - prices.rate * (prices.step_seconds(prices.n_rows + size * n_sequences) - least)
        if left > worth:
            depth, worth = size, left
    hopes = (DraftCandidate(chain.sequence.id, chain.reach[place]) for place in range(depth) for chain in chains)
    depth = prices.within_latency(depth * len(chains), hopes) // max(len(chains), 1)
    for chain in chains:
        chain.truncate(depth)


def branching(
    nodes: list[tuple[DraftChain, int]], n_branches: int, price: float
) -> list[tuple[float, DraftChain, int]]:
    """Return the nodes that can be verified together, and what each is worth in tokens without its row.

    Every leaf of a tree but one takes a branch, which costs ``price`` (tokens). ``nodes`` come with all that lead
    up to them before them, and so do those that are returned. There are ``n_branches``.
    """
    left = n_branches
    placed: set[tuple[int, int]] = {(id(chain), PENDING) for chain, _ in nodes}
    grown: set[tuple[int, int]] = set()
    possible = []
    for chain, node in nodes:
        parent = id(chain), chain.parents[node] if isinstance(chain, DraftTree) else node - 1
        reach, forks = chain.reach[node] / chain.caution, parent in grown
        if parent not in placed or (forks and (not left or reach <= price)):
            continue
        left -= forks
        grown.add(parent)
        placed.add((id(chain), node))
        possible.append((reach - price if forks else reach, chain, node))
    return possible


def keep(chains: list[DraftChain], nodes: list[tuple[DraftChain, int]]) -> None:
    """Let the chains keep these of their nodes."""
    kept: dict[int, list[int]] = {}
    for chain, node in nodes:
        kept.setdefault(id(chain), []).append(node)
    for chain in chains:
        chain.keep(kept.get(id(chain), ()))
