"""Compiles constraints for one vocabulary."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper, grammar_from

from core.llama.vocab import Vocab
from core.sampling.grammar.endless_grammar import why_endless
from core.sampling.grammar.endless_schema import why_endless as why_endless_schema
from core.sampling.grammar.error_text import in_short, is_limit
from core.sampling.grammar.gbnf import to_lark
from core.sampling.grammar.grammar_matcher import GrammarMatcher
from core.sampling.grammar.nesting import MOST_LEVELS, grammar_levels, json_levels
from core.values.errors import BadRequest
from core.values.request import Constraint

_MOST_KEPT = 32
# llguidance's time grows with the square of the number of optional or repeated items: about a second at this number.
_REPETITION, _MOST_REPETITIONS = re.compile(r"[?*+]|\{\d"), 8_000
# llguidance's prefix for special tokens: a grammar names them as <|name|>, and no string matches them.
_SPECIAL = b"\xff"
# As in llama.cpp's json-schema-to-grammar: small models would otherwise emit spaces for ever.
_WHITESPACE = r" |\n{1,2}[ \t]{0,20}"
_LIMITS = LLParserLimits(max_grammar_size=200_000, max_lexer_states=200_000, verbose_errors=False)


@dataclass(slots=True)
class _Compiled:
    """A grammar at its start. Its copies share lexer states, which have one limit for all copies.

    ``is_worn``: a copy has reached the limit, so the others would fail too.
    """

    matcher: LLMatcher
    is_worn: bool = False

    def wear_out(self) -> None:
        """Mark that a copy has failed."""
        self.is_worn = True


class GrammarCompiler:
    """Makes matchers from constraints; the latest compiled grammars are kept. Safe to use from any thread."""

    def __init__(self, vocab: Vocab) -> None:
        """Do nothing yet: most engines never get a grammar, and reading a large vocabulary takes a second."""
        self._vocab = vocab
        self._tokenizer: LLTokenizer | None = None
        self._compiled: OrderedDict[Constraint, _Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def matcher(self, constraint: Constraint) -> GrammarMatcher:
        """Return a matcher at its start. Raises BadRequest if no text can match the constraint."""
        with self._lock:
            compiled = self._compiled.get(constraint)
            if compiled is None or compiled.is_worn:
                compiled = self._compiled[constraint] = _Compiled(self._compile(constraint))
                if len(self._compiled) > _MOST_KEPT:
                    self._compiled.popitem(last=False)
            self._compiled.move_to_end(constraint)
            return GrammarMatcher(compiled.matcher.deep_copy(), self._vocab.n_tokens, compiled.wear_out)

    def _compile(self, constraint: Constraint) -> LLMatcher:
        if self._tokenizer is None:
            self._tokenizer = _read_vocabulary(self._vocab)
        try:
            grammar = _source(constraint)
        except ValueError as error:
            raise _refused(constraint, str(error)) from error
        excess = _excess(constraint, grammar)
        if excess is not None:
            raise _refused(constraint, excess)
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_LIMITS)
        if matcher.is_error():
            raise _refused(constraint, matcher.get_error())
        begun = matcher.deep_copy()
        begun.compute_bitmask()
        if begun.is_error() or (begun.is_stopped() and not begun.is_accepting()):
            said = begun.get_error()
            raise _refused(constraint, said if is_limit(said) else "no text matches it")
        # A grammar that uses up the lexer's limit for the first token fails at the second mask.
        again = matcher.deep_copy()
        again.compute_bitmask()
        if again.is_error():
            raise _refused(constraint, again.get_error())
        reason = _why_endless(constraint, grammar)
        if reason is not None:
            raise _refused(constraint, reason)
        return matcher


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


def _read_vocabulary(vocab: Vocab) -> LLTokenizer:
    wrapper = TokenizerWrapper(_Tokenizer(vocab))
    return LLTokenizer(wrapper, n_vocab=vocab.n_tokens, eos_token=sorted(vocab.end_tokens))


def _source(constraint: Constraint) -> str:
    """Return the grammar in llguidance's own form; raises ValueError."""
    # The schemas true and false take no options.
    if constraint.kind == "json_schema" and constraint.text.lstrip().startswith("{"):
        return LLMatcher.grammar_from_json_schema(constraint.text, defaults={"whitespace_pattern": _WHITESPACE})
    if constraint.kind == "gbnf":
        return LLMatcher.grammar_from_lark(to_lark(constraint.text))
    return grammar_from(constraint.kind, constraint.text)


def _excess(constraint: Constraint, grammar: str) -> str | None:
    """Return why a grammar would take llguidance too long or crash it; None if it would not."""
    if constraint.kind == "json_schema":
        levels = json_levels(constraint.text)
    else:
        levels = grammar_levels(grammar) if constraint.kind != "regex" else 0
        n_repetitions = len(_REPETITION.findall(grammar))
        if n_repetitions > _MOST_REPETITIONS:
            return f"it has {n_repetitions:,} repetitions, at most {_MOST_REPETITIONS:,} are taken"
    if levels > MOST_LEVELS:
        return f"it is {levels:,} levels deep with its references followed, at most {MOST_LEVELS:,} are taken"
    return None


def _why_endless(constraint: Constraint, grammar: str) -> str | None:
    """Return why no reply can ever end; None if one can. llguidance itself would continue to the token limit."""
    if constraint.kind == "json_schema":
        return why_endless_schema(constraint.text)
    return why_endless(grammar) if constraint.kind in ("lark", "gbnf") else None


def _refused(constraint: Constraint, said: str) -> BadRequest:
    reason = in_short(said, has_lines=constraint.kind == "lark" and constraint.is_as_sent)
    return BadRequest(f"The {constraint.name} cannot be followed: {reason}.", param=constraint.field)
