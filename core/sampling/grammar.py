"""Constrained output: grammars compiled for a vocabulary, and the state of one reply in its grammar (llguidance)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper, grammar_from

from core.llama.model import Vocab
from core.sampling.gbnf import to_lark
from core.values.errors import BadRequest, SlipstreamError
from core.values.request import Constraint
from models.formatting.sentence import Sentence

# Compiled grammars that are kept.
_MOST_KEPT = 32
# llguidance recurses into rules, groups and references, about 3 KB each. As many as a constraint's text has room for
# (MAX_CHARACTERS) took less than 64 MB. Only what is used of a stack takes memory.
_STACK_BYTES = 128 << 20
# Rules (a line each), groups and repetitions. llguidance's time grows with the square of these: about a second here.
_PART, _MOST_PARTS = re.compile(r"\n|[?*+(\[]|\{\d"), 8_000
# llguidance's prefix for special tokens: a grammar names them as <|name|>, and no string matches them.
_SPECIAL = b"\xff"
# As in llama.cpp's json-schema-to-grammar: small models would otherwise emit spaces for ever.
_WHITESPACE = r" |\n{1,2}[ \t]{0,20}"
# Lark rules for a reply whose prompt ends within a thought, and for one that may begin with a thought.
_IN_THOUGHT = "start: until_1 SPACE? @body\nSPACE: /[ \\n]{1,3}/"
_AFTER_THOUGHT = "start: SPACE? (marker_0 until_1 SPACE?)? @body\nSPACE: /[ \\n]{1,3}/"
# What a regular expression may cost before the first token: enough to repeat a letter 75,000 times. One that is too
# large is refused after 0.3 s; with llguidance's own million it took two.
_FUEL = 300_000
_LIMITS = LLParserLimits(
    max_grammar_size=200_000, max_lexer_states=200_000, initial_lexer_fuel=_FUEL, verbose_errors=False
)


class GrammarLost(SlipstreamError):
    """The grammar's parser gave up in the middle of a reply."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The grammar could not be followed any further: {reason}.")


class GrammarMatcher:
    """The state of one reply. Owned by the thread that decodes."""

    def __init__(self, matcher: LLMatcher, n_vocab: int, on_lost: Callable[[], object]) -> None:
        """Own ``matcher``, at its start; ``on_lost`` is called if it gives up."""
        self._matcher = matcher
        self._n_vocab = n_vocab
        self._on_lost = on_lost

    @property
    def is_over(self) -> bool:
        """True if nothing can be added to the reply."""
        return bool(self._matcher.is_stopped())

    def allows(self, token: int) -> bool:
        """Return whether ``token`` may come next; testing one is much cheaper than listing all."""
        return bool(self._matcher.validate_tokens([token]) == 1)

    def n_allowed(self, tokens: Sequence[int]) -> int:
        """Return how many of these consecutive tokens may come next."""
        return int(self._matcher.validate_tokens(list(tokens)))

    def after(self, tokens: Sequence[int]) -> GrammarMatcher | None:
        """Return a copy advanced by ``tokens``; None if the grammar does not allow them."""
        matcher = self._matcher.deep_copy()
        if tokens and not matcher.consume_tokens(list(tokens)):
            return None
        return GrammarMatcher(matcher, self._n_vocab, self._on_lost)

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Return which tokens may come next, shape (n_vocab,), at least one. Raises GrammarLost."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        # One byte (0 or 1) for each token, viewed as bool, with which numpy is faster.
        mask = np.unpackbits(bits, count=self._n_vocab, bitorder="little").view(np.bool_)
        if self._matcher.is_error() or not mask.any():
            raise self._lost()
        return mask

    def forced(self) -> list[int]:
        """Return the tokens that the grammar forces next, empty if there is a choice."""
        return list(self._matcher.compute_ff_tokens())

    def accept(self, token: int) -> None:
        """Advance by ``token``. Raises GrammarLost if it is not allowed."""
        if not self._matcher.consume_token(token):
            raise self._lost()

    def _lost(self) -> GrammarLost:
        self._on_lost()
        said = self._matcher.get_error()
        return GrammarLost(reason_clause(said, has_lines=False) if said else "it allows no next token")


class GrammarCompiler:
    """Makes matchers from constraints; the latest compiled grammars are kept. Safe to use from any thread."""

    def __init__(self, vocab: Vocab) -> None:
        """Do nothing yet: most engines never get a grammar, and reading a large vocabulary takes a second."""
        self._vocab = vocab
        self._tokenizer: LLTokenizer | None = None
        # The least recently used comes first. Copies of a compiled grammar share lexer states, which have one limit:
        # where one copy has reached it, the others would fail too, so it goes.
        self._compiled: dict[Constraint, LLMatcher] = {}
        self._specials: dict[str, int] | None = None  # by their texts, without those that end a reply
        self._lock = threading.Lock()

    def matcher(self, constraint: Constraint) -> GrammarMatcher:
        """Return a matcher at its start. Raises BadRequest if no text can match the constraint."""
        with self._lock:
            compiled = self._compiled.pop(constraint, None)
            if compiled is None:
                compiled = _on_deep_stack(partial(self._compile, constraint))
            self._compiled[constraint] = compiled
            if len(self._compiled) > _MOST_KEPT:
                self._compiled.pop(next(iter(self._compiled)), None)
            on_lost = partial(self._compiled.pop, constraint, None)
            return GrammarMatcher(compiled.deep_copy(), self._vocab.n_tokens, on_lost)

    def _compile(self, constraint: Constraint) -> LLMatcher:
        if self._tokenizer is None:
            wrapper = TokenizerWrapper(_Tokenizer(self._vocab))
            end_tokens = sorted(self._vocab.end_tokens)
            self._tokenizer = LLTokenizer(wrapper, n_vocab=self._vocab.n_tokens, eos_token=end_tokens)
        try:
            grammar = self._with_markers(constraint)
        except ValueError as error:
            raise _refused(constraint, str(error)) from error
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_LIMITS)
        if matcher.is_error():
            raise _refused(constraint, matcher.get_error())
        begun = matcher.deep_copy()
        first = np.unpackbits(np.frombuffer(begun.compute_bitmask(), np.uint8), bitorder="little").argmax()
        if begun.is_error() or (begun.is_stopped() and not begun.is_accepting()):
            said = begun.get_error()
            raise _refused(constraint, said if _is_limit(said) else "no text matches it")
        # A grammar that is near llguidance's limits reaches them within a token or two.
        begun.consume_token(int(first))
        begun.compute_bitmask()
        if begun.is_error():
            raise _refused(constraint, begun.get_error())
        return matcher

    def _with_markers(self, constraint: Constraint) -> str:
        """Return the grammar with the rules of its markers, and of the thoughts before it; raises ValueError."""
        body = _source(constraint)
        if constraint.markers:
            body = "\n".join([body, *self._rules(constraint.markers, body)])
        if constraint.thought is None:
            return body
        # The part after the thought is a grammar of its own, of any kind.
        whole = json.loads(body)["grammars"][0] if body.startswith('{"grammars"') else {"lark_grammar": body}
        start = _AFTER_THOUGHT if constraint.thought[0] else _IN_THOUGHT
        lark = "\n".join([start, *self._rules(constraint.thought, start)])
        return json.dumps({"grammars": [{"lark_grammar": lark}, whole | {"name": "body"}]})

    def _rules(self, markers: Sequence[str], text: str) -> list[str]:
        """Return the rules for the markers that ``text`` names."""
        if self._specials is None:
            ends = self._vocab.end_tokens
            unseen = (token for token, piece in enumerate(self._vocab.pieces) if not piece and token not in ends)
            self._specials = {name: token for token in unseen if (name := self._vocab.text(token))}
        rules = []
        for i, marker in enumerate(markers):
            names = sorted((name for name in self._specials if name in marker), key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, names))})", marker) if names else [marker]
            spelled = [
                f"<[{self._specials[part]}]>" if part in self._specials else json.dumps(part, ensure_ascii=False)
                for part in parts
                if part
            ]
            if f"marker_{i}" in text:
                rules.append(f"marker_{i}: {' '.join(spelled)}")
            if f"until_{i}" in text:
                # Text contains no special tokens, so it ends before one. Before another marker, a lazy lexeme ends at
                # the first match.
                if spelled[0].startswith("<"):
                    rules.append(f"until_{i}: MARKER_TEXT {' '.join(spelled)}")
                else:
                    rules.append(f"until_{i}: until_{i}_text {' '.join(spelled[1:])}")
                    rules.append(f"until_{i}_text[lazy]: MARKER_TEXT {spelled[0]}")
        return [*rules, "MARKER_TEXT: /(.|\\n)*/"]


def _on_deep_stack(compile_: Callable[[], LLMatcher]) -> LLMatcher:
    """Return what a function returns, or raise what it raises, from a thread with a stack for deep recursion."""
    outcome: Future[LLMatcher] = Future()

    def work() -> None:
        try:
            outcome.set_result(compile_())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="grammar")
    usual = threading.stack_size(_STACK_BYTES)
    try:
        thread.start()
    finally:
        threading.stack_size(usual)
    return outcome.result()


class _Tokenizer:
    """A vocabulary with the interface of llguidance's ``TokenizerWrapper``."""

    bos_token_id = None

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self.eos_token_id = min(vocab.end_tokens)
        self.special_token_ids = [token for token, piece in enumerate(vocab.pieces) if not piece]
        self.tokens = [piece or _SPECIAL + vocab.text(token).encode() for token, piece in enumerate(vocab.pieces)]

    def __call__(self, text: bytes) -> list[int]:
        tokens = self._vocab.tokenize(text.decode("utf-8", "replace"), add_special=False, parse_special=False)
        return [int(token) for token in tokens]


def _source(constraint: Constraint) -> str:
    """Return the grammar in llguidance's own form; raises ValueError."""
    # The schemas true and false take no options.
    if constraint.kind == "json_schema":
        if constraint.text.lstrip().startswith("{"):
            return LLMatcher.grammar_from_json_schema(constraint.text, defaults={"whitespace_pattern": _WHITESPACE})
        return grammar_from("json_schema", constraint.text)
    n_parts = len(_PART.findall(constraint.text))
    if n_parts > _MOST_PARTS:
        raise ValueError(f"it has {n_parts:,} rules, groups and repetitions, at most {_MOST_PARTS:,} are allowed")
    if constraint.kind == "gbnf":
        return LLMatcher.grammar_from_lark(to_lark(constraint.text))
    return grammar_from(constraint.kind, constraint.text)


# -- what llguidance says ---------------------------------------------------------------------------------------------

# Characters of a reason, and of a quote in it.
_LONGEST, _LONGEST_QUOTE = 400, 30
# Its messages about its limits; where it lacks a check, one of its assertions fails (panic).
_TOO_LARGE = re.compile(r"too many |too large|too complex|max is|fuel|^panic", re.IGNORECASE)
# The excerpt of the source, with carets below the error.
_EXCERPT = re.compile(r"\n\s*(?:\d+ \| [^\n]*|\^+)(?=\n|$)")
_PLACE = re.compile(r"(?:at )?(\d+)\((\d+)\): ")
_BAD_PATTERN = re.compile(r"regex parse error:\n(?P<pattern>[^\n]*)\n(?P<carets> *\^+)\nerror: (?P<cause>[^\n]*)")


def reason_clause(said: str, *, has_lines: bool) -> str:
    """Return llguidance's error as a clause; ``has_lines``: its line numbers are those that the client sent."""
    if "ff_tokens" in said:  # the tokens that must come next
        return "no text that follows it has an end"
    if _is_limit(said):
        return "it is too large"
    said = said.partition("\n<")[0]  # the rest is for llguidance's developers
    place = _PLACE.match(said)
    head = f"line {place[1]}, column {place[2]}: " if place is not None and has_lines else ""
    if (bad := _BAD_PATTERN.search(said)) is not None:
        quote = bad["pattern"][bad["carets"].index("^") :]
        return head + _cut(f"{bad['cause']}, at {quote[:_LONGEST_QUOTE]!r}")
    said = " ".join(_EXCERPT.sub("", said[place.end() if place is not None else 0 :]).split()).rstrip(".")
    return head + _cut(said) if said else "no reason is known"


def _is_limit(said: str) -> bool:
    return _TOO_LARGE.search(said) is not None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _refused(constraint: Constraint, said: str) -> BadRequest:
    reason = reason_clause(said, has_lines=constraint.kind == "lark" and constraint.is_as_sent)
    message = Sentence("The {name} cannot be followed: {reason}.", name=constraint.name, reason=reason)
    return BadRequest(message, param=constraint.field)
