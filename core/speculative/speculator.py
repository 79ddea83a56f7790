"""Decides each step, for all sequences together, what to draft; learns from what was accepted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from collections.abc import Sequence as Series
from dataclasses import dataclass, field

from core.cost_model import CostModel
from core.draft import PENDING
from core.options import MAX_DRAFT_DEPTH
from core.planner import Plan
from core.rollback import Checkpoints, Rollback
from core.sequence import Sequence
from core.speculative.acceptance import SequenceAcceptance
from core.speculative.depth import Candidate, another_round, best_cut, charged
from core.speculative.draft_model import DraftFailed
from core.speculative.drafter import Chain, Drafter, PaidDrafter, Watcher
from core.speculative.lookup import Lookup
from core.speculative.purse import Purse
from core.speculative.tree import Forker, Tip, Tree

MAX_DRAFT = MAX_DRAFT_DEPTH
# A chain whose chance has sunk below this cannot pay in any step.
_HOPELESS = 0.02
_SPEEDUP_WEIGHT = 0.05
_FIRST_PROBE, _LONGEST_PROBE = 8, 256
# Where drafting promises nothing, it is thought about anew only every so many steps.
_LONGEST_REST = 16
# How often a probe has shown that drafting pays: what may be risked on the next one depends on it.
_PROBE_CHANCE, _CHANCE_WEIGHT, _LEAST_CHANCE = 0.5, 0.2, 0.02
_START_MEAN = 0.6
_CAUTION = 1.3
# So many plain steps may be lost on trying a drafter out before anything was won.
_CREDIT_STEPS = 2.0
# What reading a sequence costs a drafter is spread over the steps that are likely still to come: a reply of
# usual length, at so many tokens a step.
_USUAL_REPLY, _REPLY_WEIGHT = 128.0, 0.1
_TOKENS_PER_STEP = 3.0
# What drafts are measured against must be known: after so many steps without a plain one, one is made.
_CONTROL_STEPS = 40
# How many next tokens are asked for at each place where forks may pay, and how likely others than the first choice are
# at best: where a row (the mean of the next so many) is worth more than that, they are not asked for.
_WIDEST, _SECOND_CHANCE, _WIDE_LOOK = 3, 0.25, 8
# So many places off the trunks are considered for drafting on.
_MOST_SIDE_TIPS = 8
_SIBLING_MEAN = 0.1


@dataclass(slots=True)
class _Trial:
    """When a paid drafter was last tried on a sequence, by the count of its verified tokens."""

    tried_at: int = 0
    interval: int = _FIRST_PROBE
    is_new: bool = False


@dataclass(slots=True)
class _Record:
    """What speculation knows of one sequence; acceptance and trials are by drafter."""

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, _Trial]
    siblings: SequenceAcceptance = field(default_factory=lambda: SequenceAcceptance(_SIBLING_MEAN))
    n_verified: int = 0
    rest: int = 0
    rest_length: int = 0

    def tire(self) -> None:
        """Nothing is promised here: look again a little later, each time later still."""
        self.rest_length = min(2 * self.rest_length + 1, _LONGEST_REST)
        self.rest = self.rest_length

    def wake(self) -> None:
        """Something new is known: look again at once."""
        self.rest = self.rest_length = 0


@dataclass(slots=True)
class DraftStats:
    """Totals: tokens drafted and accepted by depth, tokens that came, seconds saved."""

    n_drafted: int = 0
    n_accepted: int = 0
    n_bonus: int = 0
    drafted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)
    accepted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)


class Speculator:
    """Chooses drafter and depth by what they are worth beyond plain decoding, from measured times and acceptance.

    A lookup costs nothing; ``paid`` drafters must promise more than it has found. ``fixed_depth`` switches the
    judgement off: always so many tokens of the first paid drafter (or of the lookup where there is none). It is there
    to be compared with. ``width`` is how many next tokens a draft model proposes at each place, more than one making
    trees; None where that is decided as well. With a fixed depth, a tree has that trunk and as many of the likeliest
    other nodes as make ``width`` at each depth.
    """

    def __init__(
        self,
        cost: CostModel,
        *,
        n_ctx: int,
        lookup: Lookup | None = None,
        paid: Series[PaidDrafter] = (),
        fixed_depth: int | None = None,
        width: int | None = None,
        rollback: Rollback | None = None,
        end_tokens: Collection[int] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``cost`` is the target's, ``n_ctx`` the longest a sequence may get.

        ``rollback`` takes rejected tokens back: it bounds the depth, and what it costs is charged. None: free.
        ``end_tokens`` end a text: nothing is drafted beyond one.
        """
        self.stats = DraftStats()
        self.purse = Purse(_CREDIT_STEPS * cost.time(1))
        self._cost = cost
        self._n_ctx = n_ctx
        self._lookup = lookup
        self._paid = tuple(paid)
        self._forker = next((drafter for drafter in self._paid if isinstance(drafter, Forker)), None)
        self._watchers = tuple(drafter for drafter in self._paid if isinstance(drafter, Watcher))
        self._fixed_depth = fixed_depth
        self._width = width
        # A fixed depth is one also where it is hopeless.
        self._least_reach = _HOPELESS if fixed_depth is None else 0.0
        self._n_branches, self._branch_seconds = 0, 0.0
        self._has_forked = False
        self._most = min(MAX_DRAFT, rollback.reach) if rollback is not None else MAX_DRAFT
        # Where going back is free, it is not asked for what it costs.
        self._checkpoints = rollback if isinstance(rollback, Checkpoints) else None
        self._end_tokens = end_tokens
        self._clock = clock
        self._drafters: tuple[Drafter, ...] = (lookup, *paid) if lookup is not None else self._paid
        self._means = {drafter.name: _START_MEAN for drafter in self._drafters}
        self._records: dict[str, _Record] = {}
        self._speedup = 1.0
        self._seconds_drafting = 0.0
        self._seconds_at_risk = 0.0
        self._usual_reply = _USUAL_REPLY
        self._probe_chance = {drafter.name: _PROBE_CHANCE for drafter in self._paid}
        self._cut_away: dict[str, Chain] = {}

    # -- sequences ----------------------------------------------------------------------------------------------

    def admit(self, sequence: Sequence) -> None:
        """A sequence will decode from now on."""
        acceptance = {name: SequenceAcceptance(mean) for name, mean in self._means.items()}
        self._records[sequence.id] = _Record(acceptance, {drafter.name: _Trial() for drafter in self._paid})
        for drafter in self._drafters:
            drafter.admit(sequence)

    def forget(self, sequence: Sequence) -> None:
        """A sequence has ended; what it taught stays."""
        record = self._records.pop(sequence.id, None)
        if record is None:
            return
        self._usual_reply += _REPLY_WEIGHT * (sequence.n_generated - self._usual_reply)
        for drafter in self._drafters:
            drafter.forget(sequence)
            seen = record.acceptance[drafter.name]
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[drafter.name] += weight * (seen.mean - self._means[drafter.name])

    # -- before a step ------------------------------------------------------------------------------------------

    def draft(
        self,
        decoding: list[Sequence],
        n_rows: int,
        kv: int,
        room: int,
        n_branches: int = 0,
        branch_seconds: float = 0.0,
    ) -> dict[str, Chain]:
        """Return the chains to verify in the next step, by request id; none is a normal answer.

        ``n_rows`` are the rows that the step has anyway, ``kv`` the tokens they attend to, ``room`` the rows that may
        be added, ``n_branches`` the side branches that trees may have altogether; each adds ``branch_seconds``.
        """
        began = self._clock()
        self._n_branches, self._branch_seconds = n_branches, branch_seconds
        if self._forker is not None and self._has_forked:
            self._forker.drop_forks()
            self._has_forked = False
        self._seconds_at_risk = 0.0
        try:
            if self._fixed_depth is not None:
                chains = self._draft_fixed(decoding, room)
            else:
                chains = self._draft_what_pays(decoding, n_rows, kv, room)
        except DraftFailed:
            chains = []
        self._collect_observations()
        self._seconds_drafting = self._clock() - began
        drafted: dict[str, Chain] = {}
        self._cut_away = {}
        for chain in chains:
            (drafted if chain.kept_depths else self._cut_away)[chain.sequence.id] = chain
        return drafted

    def _draft_fixed(self, decoding: list[Sequence], room: int) -> list[Chain]:
        assert self._fixed_depth is not None
        drafter: Drafter | None = self._paid[0] if self._paid else self._lookup
        if drafter is None or not self._fixed_depth:
            return []
        width = self._width or 1 if drafter is self._forker and self._n_branches else 1
        room_each = room // max(len(decoding), 1)
        depth = min(self._fixed_depth, room_each)
        if width > 1:
            return self._draft_fixed_trees([self._tree(sequence) for sequence in decoding], depth, width, room_each)
        chains = [self._chain(sequence, drafter) for sequence in decoding]
        for _ in range(depth):
            live = [chain for chain in chains if not chain.is_done and self._limit(chain) > len(chain.tokens)]
            if live:
                self._extend(drafter, live)
        return chains

    def _draft_fixed_trees(self, trees: list[Tree], depth: int, width: int, room_each: int) -> list[Chain]:
        for level in range(depth):
            self._grow([tip for tree in trees for tip in self._widest(tree, level, width)], width)
        nodes: list[tuple[Chain, int]] = []
        for tree in trees:
            trunk = set(tree.trunk)
            others = sorted(set(range(len(tree.tokens))) - trunk, key=lambda node: (-tree.reach[node], node))
            n_others = min(len(trunk) * width, room_each) - len(trunk)
            nodes += [(tree, node) for node in (*tree.trunk, *others[:n_others])]
        chains: list[Chain] = [*trees]
        self._keep(chains, [(chain, node) for _, chain, node in self._branching(nodes, 0.0)])
        return chains

    def _widest(self, tree: Tree, depth: int, width: int) -> list[Tip]:
        """Return a tree's tips at a depth: that of the trunk and the likeliest others, ``width`` in all."""
        if depth >= self._limit(tree):
            return []
        nodes = [node for node in tree.tips if tree.depth_of(node) == depth - 1]
        trunk = tree.trunk[-1:]
        nodes.sort(key=lambda node: (node not in trunk, -tree.reach_of(node)))
        return [Tip(tree, node) for node in nodes[:width]]

    def _draft_what_pays(self, decoding: list[Sequence], n_rows: int, kv: int, room: int) -> list[Chain]:
        if self._cost.age(n_rows) > _CONTROL_STEPS:
            return []
        awake = [sequence for sequence in decoding if self._is_awake(sequence)] if self._paid else []
        chains = self._look_up(decoding, room)
        if not awake and not chains:
            return []
        per_row = kv / max(n_rows, 1)

        def step_seconds(rows: int) -> float:
            return self._cost.time(rows, int(per_row * rows))

        # What a second is worth: the tokens that it brings at the speed reached lately.
        rate = len(decoding) / step_seconds(len(decoding)) * self._speedup
        if not self.purse.may_risk(0.0):
            # What was believed to pay has not: from here on only what is clearly worth it.
            rate *= _CAUTION
        if awake:
            chains = self._draft_at_a_price(awake, chains, n_rows, rate, step_seconds, room)
        self._cut_to_what_pays(chains, n_rows, rate, step_seconds, room)
        return chains

    def _is_awake(self, sequence: Sequence) -> bool:
        """Return whether to think about paid drafting for a sequence in this step."""
        record = self._records[sequence.id]
        record.rest -= record.rest > 0
        return not record.rest

    def _look_up(self, decoding: list[Sequence], room: int) -> list[Chain]:
        """Return chains of what was found; looking it up costs next to nothing."""
        if self._lookup is None:
            return []
        chains = [self._chain(sequence, self._lookup) for sequence in decoding]
        for chain in chains:
            limit = min(self._limit(chain), room)
            while not chain.is_done and len(chain.tokens) < limit:
                self._extend(self._lookup, [chain])
        return [chain for chain in chains if chain.tokens]

    def _draft_at_a_price(
        self,
        awake: list[Sequence],
        found: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> list[Chain]:
        """Let the drafter work that promises most, where that is more than what was found, for as long as it pays."""
        by_id = {chain.sequence.id: chain for chain in found}
        chosen: dict[str, list[Chain]] = {drafter.name: [] for drafter in self._paid}
        width = self._width_worth_trying(n_rows, rate, step_seconds) if awake and self._n_branches else 1
        for sequence in awake:
            chain, promise = self._most_promising(sequence, rate, step_seconds, n_rows)
            rival = by_id.get(sequence.id)
            if promise > (self._worth(rival, rate, step_seconds, n_rows) if rival is not None else 0.0):
                forks = width > 1 and chain.drafter is self._forker
                chosen[chain.drafter.name].append(self._tree(sequence) if forks else chain)
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        drafted = []
        for drafter in self._paid:
            self._probe(drafter, awake)
            chains = chosen[drafter.name]
            if width > 1 and drafter is self._forker:
                trees = [chain for chain in chains if isinstance(chain, Tree)]
                self._grow_trees(trees, n_rows + n_taken, rate, step_seconds, room - n_taken, width)
            else:
                self._run_rounds(drafter, chains, n_rows + n_taken, rate, step_seconds, room - n_taken)
            drafted += [chain for chain in chains if chain.tokens or (chain.next and chain.sequence.id not in by_id)]
            n_taken += sum(len(chain.tokens) for chain in chains)
        replaced = {chain.sequence.id for chain in drafted}
        return [chain for chain in found if chain.sequence.id not in replaced] + drafted

    def _most_promising(
        self, sequence: Sequence, rate: float, step_seconds: Callable[[int], float], n_rows: int
    ) -> tuple[Chain, float]:
        """Return an empty chain of the paid drafter that promises most on a sequence, and what it promises."""
        record = self._records[sequence.id]
        best: tuple[Chain, float] | None = None
        for drafter in self._paid:
            chain = self._chain(sequence, drafter)
            promise = self._promise(drafter, chain, rate, step_seconds, n_rows)
            trial = record.trials[drafter.name]
            if trial.is_new:
                self._judge_trial(trial, drafter.name, promise)
            if best is None or promise > best[1]:
                best = chain, promise
        assert best is not None
        if best[1] > 0.0:
            record.wake()
        else:
            record.tire()
        return best

    def _judge_trial(self, trial: _Trial, name: str, promise: float) -> None:
        trial.is_new = False
        chance = self._probe_chance[name]
        chance += _CHANCE_WEIGHT * (float(promise > 0.0) - chance)
        self._probe_chance[name] = max(chance, _LEAST_CHANCE)

    def _run_rounds(
        self,
        drafter: PaidDrafter,
        chains: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> None:
        for _ in range(MAX_DRAFT):
            live = [chain for chain in chains if not chain.is_done and len(chain.tokens) < self._limit(chain)]
            live.sort(key=lambda chain: -chain.probability * chain.acceptance.mean)
            n_drafted = sum(len(chain.tokens) for chain in chains)
            outlook = another_round(
                [Candidate(chain.probability, chain.acceptance.mean, self._loss(chain, rate)) for chain in live],
                n_rows + n_drafted,
                rate,
                step_seconds,
                drafter.round_seconds,
                room - n_drafted,
                self._late(drafter, [chain.sequence for chain in live if not chain.tokens]),
            )
            if not outlook.n_chains:
                return
            self._extend(drafter, live[: outlook.n_chains])

    def _grow_trees(
        self,
        trees: list[Tree],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
        width: int,
    ) -> None:
        """Let trees grow where it promises most, by as many places in each round as pay; as ``_run_rounds`` does."""
        forker = self._forker
        assert forker is not None
        for _ in range(MAX_DRAFT):
            tips = [Tip(tree, node) for tree in trees for node in self._open_tips(tree)]
            tips.sort(key=lambda tip: -tip.chain.reach_of(tip.node) * tip.chain.acceptance.mean)
            del tips[len(trees) + _MOST_SIDE_TIPS :]
            n_drafted = sum(tree.n_places for tree in trees)
            outlook = another_round(
                [Candidate(tree.reach_of(node), tree.acceptance.mean) for tree, node in tips],
                n_rows + n_drafted,
                rate,
                step_seconds,
                forker.round_seconds,
                room - n_drafted,
                self._late(forker, [tree.sequence for tree, node in tips if node == PENDING]),
            )
            if not outlook.n_chains:
                return
            self._grow(tips[: outlook.n_chains], width)

    def _open_tips(self, tree: Tree) -> list[int]:
        limit = self._limit(tree) - 1
        return [node for node in tree.tips if tree.depth_of(node) < limit]

    def _width_worth_trying(self, n_rows: int, rate: float, step_seconds: Callable[[int], float]) -> int:
        """Return how many next tokens to ask for: first choices only where a row costs more than others can bring."""
        if self._width is not None:
            return self._width
        row_seconds = (step_seconds(n_rows + _WIDE_LOOK) - step_seconds(n_rows)) / _WIDE_LOOK
        price = rate * (row_seconds + self._branch_seconds)
        return _WIDEST if price < _SECOND_CHANCE else 1

    def _probe(self, drafter: PaidDrafter, awake: list[Sequence]) -> None:
        """Let a drafter read along now and then where it is not used, to learn whether it would pay."""
        for sequence in awake:
            record = self._records[sequence.id]
            trial = record.trials[drafter.name]
            if record.n_verified - trial.tried_at < trial.interval:
                continue
            seconds = drafter.catch_up_seconds(drafter.n_behind(sequence))
            if not self.purse.may_risk(seconds, self._probe_chance[drafter.name]):
                continue
            began = self._clock()
            drafter.shadow(sequence)
            self._seconds_at_risk += self._clock() - began
            trial.tried_at = record.n_verified
            trial.is_new = True
            record.wake()
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)

    def _cut_to_what_pays(
        self,
        chains: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> None:
        """Keep the drafted tokens whose verification pays, over all chains together."""
        tokens = sorted(
            (
                (reach, -node, chain, gain)
                for chain in chains
                for node, (reach, gain) in enumerate(zip(chain.reach, self._gains(chain, rate), strict=True))
            ),
            key=lambda entry: (-entry[0], -entry[1]),
        )[: max(room, 0)]
        if not self._has_forked:
            count = best_cut([gain for _, _, _, gain in tokens], n_rows, rate, step_seconds)
            sizes: dict[int, int] = {}
            for _, _, chain, _ in tokens[:count]:
                sizes[id(chain)] = sizes.get(id(chain), 0) + 1
            for chain in chains:
                chain.truncate(sizes.get(id(chain), 0))
            return
        nodes = self._branching([(chain, -node) for _, node, chain, _ in tokens], rate * self._branch_seconds)
        count = best_cut([worth for worth, _, _ in nodes], n_rows, rate, step_seconds)
        self._keep(chains, [(chain, node) for _, chain, node in nodes[:count]])

    def _branching(self, nodes: list[tuple[Chain, int]], price: float) -> list[tuple[float, Chain, int]]:
        """Return the nodes that can be verified together, and what each is worth in tokens without its row.

        Every leaf of a tree but one takes a branch, which costs ``price`` (tokens). ``nodes`` come with all that lead
        up to them before them, and so do those that are returned.
        """
        left = self._n_branches
        placed: set[tuple[int, int]] = {(id(chain), PENDING) for chain, _ in nodes}
        grown: set[tuple[int, int]] = set()
        possible = []
        for chain, node in nodes:
            parent = id(chain), chain.parents[node] if isinstance(chain, Tree) else node - 1
            reach, forks = chain.reach[node], parent in grown
            if parent not in placed or (forks and (not left or reach <= price)):
                continue
            left -= forks
            grown.add(parent)
            placed.add((id(chain), node))
            possible.append((reach - price if forks else reach, chain, node))
        return possible

    def _keep(self, chains: list[Chain], nodes: list[tuple[Chain, int]]) -> None:
        """Let the chains keep these of their nodes."""
        kept: dict[int, list[int]] = {}
        for chain, node in nodes:
            kept.setdefault(id(chain), []).append(node)
        for chain in chains:
            chain.keep(kept.get(id(chain), ()))

    # -- after a step -------------------------------------------------------------------------------------------

    def evaluated(self, shares: Plan) -> int:
        """The target has evaluated ``shares``: drafters that feed on it take what they need.

        Returns the bytes that all drafters have read since the step before.
        """
        if self._watchers:
            began = self._clock()
            for watcher in self._watchers:
                watcher.evaluated(shares)
            # No risk: it costs the same whatever is drafted.
            self._seconds_drafting += self._clock() - began
        if not self._seconds_at_risk:
            return 0  # none has worked
        return sum([drafter.take_bytes_read() for drafter in self._paid])

    def verified(self, sequence: Sequence, chain: Chain | None, tokens: list[int], n_accepted: int) -> None:
        """Learn from a step: ``tokens`` came, of which the first ``n_accepted`` were the chain's."""
        record = self._records.get(sequence.id)
        if record is None:
            return
        own_lookup = 0
        if chain is not None:
            chain.learn(tokens, n_accepted)
            self._count(chain, n_accepted)
            own_lookup = min(n_accepted + 1, len(chain.tokens)) if chain.drafter is self._lookup else 0
        record.n_verified += len(tokens)
        if chain is not None and chain.drafter is not self._lookup:
            trial = record.trials[chain.drafter.name]
            trial.tried_at, trial.interval = record.n_verified, _FIRST_PROBE
        if isinstance(chain, Tree) and self._forker is not None:
            began = self._clock()
            self._forker.settle(sequence)
            self.branched(self._clock() - began)
        self._judge_unverified(chain or self._cut_away.get(sequence.id), tokens, n_accepted)
        if self._lookup is not None:
            self._lookup.advance(sequence, tokens, own_lookup)

    def _judge_unverified(self, chain: Chain | None, tokens: list[int], n_accepted: int) -> None:
        """Learn from the first token that was drafted but not verified, where the target's own is known."""
        if isinstance(chain, Tree) and not chain.kept_nodes:
            chain.learn(tokens, n_accepted)
        if chain is None or chain.next is None or chain.drafter is self._lookup:
            return
        if n_accepted < len(chain.tokens) or len(tokens) <= n_accepted:
            return
        was_right = tokens[n_accepted] == chain.next.token
        rate = chain.drafter.table.rate(chain.next.evidence)
        chain.drafter.table.learn(chain.next.evidence, was_right)
        chain.acceptance.learn(chain.next.evidence, rate, was_right)

    def branched(self, seconds: float) -> None:
        """Book what the branches of a step's trees have taken beside its decode, before ``step_done``."""
        self._seconds_at_risk += seconds
        self._seconds_drafting += seconds

    def step_done(self, n_sequences: int, n_tokens: int, plain_step: float, decode: float) -> None:
        """Book a step that only decoded: ``n_tokens`` came for ``n_sequences`` in ``decode`` seconds and the drafting.

        An end-of-generation token counts as one. ``plain_step`` is what the step takes without drafts.
        """
        plain = plain_step * n_tokens / max(n_sequences, 1)
        if self._checkpoints is not None:
            decode += self._checkpoints.take_seconds()
        # Deciding is no risk: it costs the same whatever is decided.
        self.purse.book(plain, decode + self._seconds_at_risk)
        spent = decode + self._seconds_drafting
        achieved = min(max(plain / spent, 0.5), 2.0 * MAX_DRAFT) if spent > 0 else 1.0
        self._speedup = max(1.0, self._speedup + _SPEEDUP_WEIGHT * (achieved - self._speedup))

    def _count(self, chain: Chain, n_accepted: int) -> None:
        depths = chain.kept_depths
        self.stats.n_drafted += len(depths)
        self.stats.n_accepted += n_accepted
        self.stats.n_bonus += 1
        for depth in depths:
            self.stats.drafted_at[depth] += 1
        for depth in range(n_accepted):
            self.stats.accepted_at[depth] += 1

    def forget_texts(self) -> None:
        """Drop what drafters keep of texts; what was learnt of acceptance stays."""
        for drafter in self._drafters:
            drafter.clear()

    def close(self) -> None:
        """Free the drafters."""
        for drafter in self._paid:
            drafter.close()

    # -- helpers ------------------------------------------------------------------------------------------------

    def _chain(self, sequence: Sequence, drafter: Drafter) -> Chain:
        return Chain(sequence, drafter, self._records[sequence.id].acceptance[drafter.name])

    def _tree(self, sequence: Sequence) -> Tree:
        assert self._forker is not None
        record = self._records[sequence.id]
        return Tree(sequence, self._forker, record.acceptance[self._forker.name], siblings=record.siblings)

    def _limit(self, chain: Chain) -> int:
        """Return how many tokens may be drafted: no more than can be used."""
        return min(self._most, chain.sequence.n_left(self._n_ctx) - 1)

    def _late(self, drafter: PaidDrafter, sequences: list[Sequence]) -> float:
        """Return this step's part of the seconds that a drafter needs to read what it has not read yet."""
        n_behind = sum(drafter.n_behind(sequence) - 1 for sequence in sequences)
        if n_behind <= 0:
            return 0.0
        longest = max(min(self._usual_reply - s.n_generated, s.n_left(self._n_ctx)) for s in sequences)
        n_steps = max(1.0, longest / _TOKENS_PER_STEP)
        return drafter.catch_up_seconds(n_behind) / n_steps

    def _extend(self, drafter: Drafter, chains: list[Chain]) -> None:
        began = self._clock()
        self._extend_all(drafter, chains)
        if drafter is not self._lookup:
            self._seconds_at_risk += self._clock() - began

    def _extend_all(self, drafter: Drafter, chains: list[Chain]) -> None:
        for chain, guess in zip(chains, drafter.extend(chains), strict=True):
            # Behind the end there is nothing; the end itself comes with the row before it.
            if guess is None or guess.token in self._end_tokens:
                chain.stop(guess)
                continue
            guide = chain.sequence.sampler.guide
            if guide is not None and guide.n_allowed([*chain.tokens, guess.token]) <= len(chain.tokens):
                chain.is_done = True  # what the grammar forbids need not be verified
                continue
            chain.add(guess)
            chain.is_done = chain.probability < self._least_reach

    def _grow(self, tips: list[Tip], width: int) -> None:
        """Let the draft model draft on at ``tips``, with ``width`` choices at each."""
        if not tips:
            return
        assert self._forker is not None
        began = self._clock()
        self._has_forked = True
        tips = tips[: self._forker.most_tips]
        for (tree, node), guesses in zip(tips, self._forker.grow(tips, width), strict=True):
            assert isinstance(tree, Tree)
            tree.grow(node, guesses, self._least_reach, self._end_tokens)
        self._seconds_at_risk += self._clock() - began

    def _promise(
        self, drafter: PaidDrafter, chain: Chain, rate: float, step_seconds: Callable[[int], float], n_rows: int
    ) -> float:
        """Return what a drafter can be expected to be worth on a sequence, in tokens."""
        late = self._late(drafter, [chain.sequence])
        candidates = [Candidate(1.0, chain.acceptance.mean, self._loss(chain, rate))]
        return another_round(candidates, n_rows, rate, step_seconds, drafter.round_seconds, MAX_DRAFT, late).worth

    def _worth(self, chain: Chain, rate: float, step_seconds: Callable[[int], float], n_rows: int) -> float:
        gains = self._gains(chain, rate)
        count = best_cut(gains, n_rows, rate, step_seconds)
        return sum(gains[:count]) - rate * (step_seconds(n_rows + count) - step_seconds(n_rows))

    def _loss(self, chain: Chain, rate: float) -> float:
        """Return what it costs, in tokens, if the next token of a chain is rejected."""
        if self._checkpoints is None:
            return 0.0
        return rate * self._checkpoints.loss(chain.sequence.n_replay + len(chain.tokens) + 1)

    def _gains(self, chain: Chain, rate: float) -> list[float]:
        """Return what verifying each token of a chain promises, in tokens."""
        checkpoints, n_replay = self._checkpoints, chain.sequence.n_replay
        if checkpoints is None:
            return chain.reach
        first = 0.0 if n_replay else rate * checkpoints.mark_seconds
        return charged(chain.reach, first, lambda depth: rate * checkpoints.loss(n_replay + depth))

    def _collect_observations(self) -> None:
        for drafter in self._drafters:
            for sequence_id, evidence, was_right in drafter.take_observations():
                record = self._records.get(sequence_id)
                rate = drafter.table.rate(evidence)
                drafter.table.learn(evidence, was_right)
                if record is not None:
                    record.acceptance[drafter.name].learn(evidence, rate, was_right)
