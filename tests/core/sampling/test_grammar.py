"""Grammars over Ember's vocabulary: what is compiled, what is refused and why, and what comes next."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from core.llama.model import Vocab
from core.sampling.grammar import GrammarCompiler, GrammarLost, GrammarMatcher
from core.values.errors import BadRequest
from core.values.request import MAX_CHARACTERS, Constraint, ConstraintKind
from tests.support.engines import open_engine


@pytest.fixture(scope="module")
def vocab() -> Iterator[Vocab]:
    with open_engine() as engine:
        yield engine.vocab


@pytest.fixture(scope="module")
def grammars(vocab: Vocab) -> GrammarCompiler:
    return GrammarCompiler(vocab)


def tokens_of(vocab: Vocab, text: str) -> list[int]:
    return [int(token) for token in vocab.tokenize(text, add_special=False)]


def matches(guide: GrammarMatcher, vocab: Vocab, text: str) -> bool:
    """Return whether a reply may be ``text``."""
    end = min(vocab.end_tokens)
    tokens = [*tokens_of(vocab, text), end]
    return guide.n_allowed(tokens) == len(tokens)


def walk(guide: GrammarMatcher, tokens: list[int]) -> None:
    """Let a reply be ``tokens``, looking at what may come before each."""
    for token in tokens:
        guide.allowed()
        guide.accept(token)


@pytest.mark.parametrize(
    ("kind", "source", "good", "bad"),
    [
        ("regex", "(yes|no)", ("yes", "no"), ("", "maybe", "yes!")),
        ("regex", r"\d{3}-\d{4}", ("555-1234",), ("555-123", "x555-1234")),
        ("regex", "\n\n", ("\n\n",), ("\n", "a")),
        ("gbnf", 'root ::= "a" root | "b"', ("b", "aab"), ("a", "c")),
        ("lark", 'start: item ("," item)*\nitem: /[a-z]+/', ("a", "a,bc"), ("a,", "A")),
        ("json_schema", '{"type": "object"}', ('{"a": [1, null]}', "{}"), ("[]", '{"a": }')),
        ("json_schema", '{"type": "array", "items": {"enum": [1, "x"]}}', ('[1, "x"]', "[]"), ("[2]", "{}")),
        ("json_schema", '{"type": "integer", "minimum": 3, "maximum": 12}', ("3", "12"), ("2", "13", "3.5")),
        ("lark", 'start: a\na: a "x" | "x"', ("x", "xxx"), ("", "y")),
        ("regex", "((a{0,100}){0,100}){0,100}", ("", "aaa"), ("b",)),
        ("gbnf", 'root ::= "a"{1,100000}', ("a", "aaaa"), ("",)),
        ("json_schema", "true", ("null", '{"a": 1}', "3"), ("nil",)),
        (
            "json_schema",
            '{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next":'
            ' {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}}}',
            ('{"next": null}', '{"next": {"next": null}}'),
            ("{}", '{"next": 1}'),
        ),
    ],
)
def test_a_grammar_takes_what_it_should(
    grammars: GrammarCompiler,
    vocab: Vocab,
    kind: ConstraintKind,
    source: str,
    good: tuple[str, ...],
    bad: tuple[str, ...],
) -> None:
    for text in good:
        assert matches(grammars.matcher(Constraint(kind, source)), vocab, text), text
    for text in bad:
        assert not matches(grammars.matcher(Constraint(kind, source)), vocab, text), text


def test_json_has_no_endless_spaces(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("json_schema", '{"type": "object"}'))
    assert matches(guide, vocab, '{\n  "a": 1\n}')
    assert not matches(guide, vocab, '{ "a":' + 30 * " " + "1}")
    assert not matches(guide, vocab, "{\n\n\n\n}")


@pytest.mark.parametrize(
    ("kind", "source", "says"),
    [
        ("regex", "((", "The regular expression cannot be followed: .*unclosed group"),
        ("regex", r"[^\s\S]", "no text matches it"),
        ("regex", r"(a)\1", "backreferences are not supported"),
        ("gbnf", "root ::= x", "The grammar cannot be followed: .*Rule 'x' not found"),
        ("gbnf", "hello", "The grammar cannot be followed: line 1: Expected ::="),
        ("regex", "a" * 500 + "(?!b)", r"cannot be followed: look-around, .* is not supported, at '\(\?!b\)'\.$"),
        ("regex", "(a{1000}){1000}", "The regular expression cannot be followed: it is too large\\.$"),
        ("regex", "a{100000}", "The regular expression cannot be followed: it is too large\\.$"),
        ("gbnf", f'root ::= "{70_000 * "x"}"', "The grammar cannot be followed: it is too large\\.$"),
        ("regex", "a?" * 60_000, "it has 60,000 rules, groups and repetitions, at most 8,000"),
        ("lark", "start: " + '"x"? ' * 20_000, "it has 20,000 rules"),
        ("lark", 'start: "a" b', 'line 1, column 8: unknown name: "b"\\.$'),
        ("lark", "start: start", "no text matches it"),
        ("lark", "start: a\na: b\nb: a", "no text matches it"),
        ("gbnf", "root ::= root", "no text matches it"),
        ("regex", "(?=a)b", "look-around"),
        ("regex", "(" * 3000 + "a" + ")" * 3000, "cannot be followed"),
        (
            "json_schema",
            '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}',
            "no text",
        ),
        ("json_schema", '{"type": "integer", "minimum": 5, "maximum": 2}', "minimum .5. is greater than maximum"),
        ("json_schema", '{"type": "string", "minLength": 5, "maxLength": 2}', "minLength"),
        (
            "json_schema",
            json.dumps({"allOf": [{"type": "string", "pattern": f".*{c}.*"} for c in "abcdefghijklmnop"]}),
            "regex",
        ),
        ("json_schema", "{", "The JSON schema cannot be followed"),
        ("json_schema", "3", "must be an object or boolean"),
        ("json_schema", '{"type": "nope"}', "Invalid type: nope"),
        ("json_schema", '{"not": {}}', 'Unimplemented keys: \\["not"\\]'),
        ("json_schema", '{"enum": []}', "Unsatisfiable"),
        ("json_schema", '{"$ref": "#"}', "no text matches it"),
        ("lark", 'start: "x" start', "no text that follows it has an end"),
        ("gbnf", 'root ::= "(" my-list ")"\nmy-list ::= "," my-list', "no text that follows it has an end"),
        ("json_schema", '{"$ref": "http://example.com/schema"}', "does not fetch resources"),
        ("json_schema", "[" * 5000, "recursion limit"),
        ("json_schema", '{"items":' * 3000 + "{}" + "}" * 3000, "recursion limit"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(
    grammars: GrammarCompiler, kind: ConstraintKind, source: str, says: str
) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        grammars.matcher(Constraint(kind, source, field="response_format"))
    assert caught.value.param == "response_format"
    assert len(caught.value.message) < 600
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("kind", "source", "says"),
    [
        ("regex", "", "The regular expression is empty"),
        ("lark", "  \n", "The grammar is empty"),
        ("json_schema", "", "The JSON schema is empty"),
        ("regex", "x" * (MAX_CHARACTERS + 1), "at most 131,072"),
    ],
)
def test_sources_without_text_or_with_too_much_are_refused(kind: ConstraintKind, source: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        Constraint(kind, source)


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadRequest, match="one of json_schema, regex, lark, gbnf"):
        Constraint("yaml", "a: b")


def test_each_guide_begins_anew(grammars: GrammarCompiler, vocab: Vocab) -> None:
    constraint = Constraint("regex", "(ab)+")
    first = grammars.matcher(constraint)
    first.accept(int(first.allowed().argmax()))
    second = grammars.matcher(constraint)
    assert matches(second, vocab, "ab")


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("json_schema", '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}'),
        ("lark", 'start: ("a" | "b") start'),
    ],
)
def test_what_has_no_end_is_followed_to_the_replys_length(
    grammars: GrammarCompiler, kind: ConstraintKind, source: str
) -> None:
    matcher = grammars.matcher(Constraint(kind, source))
    for _ in range(50):
        matcher.accept(int(matcher.allowed().argmax()))
    assert not matcher.is_over


def names(count: int) -> list[str]:
    """Return short names, so that many of them fit into a constraint."""
    return ["".join(letters) for letters in itertools.islice(itertools.product("abcdefghijklmnop", repeat=4), count)]


def chain_of_definitions(wrap: Callable[[dict[str, str]], object], count: int) -> str:
    """Return a schema in which each definition needs the next."""
    known = names(count)
    definitions = {one: wrap({"$ref": f"#/$defs/{other}"}) for one, other in itertools.pairwise(known)}
    schema = {"$ref": f"#/$defs/{known[0]}", "$defs": definitions | {known[-1]: {"type": "null"}}}
    return json.dumps(schema, separators=(",", ":"))


RULE_NAMES = [*names(7_400), "last"]
RULE_PAIRS = list(itertools.pairwise(RULE_NAMES))
DEEP = {
    "references": ("json_schema", chain_of_definitions(lambda ref: ref, 3_400)),
    "lists": ("json_schema", chain_of_definitions(lambda ref: {"items": ref}, 2_700)),
    "properties": ("json_schema", chain_of_definitions(lambda ref: {"properties": {"a": ref}}, 1_900)),
    "rules": ("lark", f"start: {RULE_NAMES[0]}\n" + "\n".join(f'{a}:"x" {b}' for a, b in RULE_PAIRS) + '\nlast: "y"'),
}


@pytest.mark.parametrize("deep", DEEP)
def test_what_is_as_deep_as_a_constraint_has_room_for_is_compiled(grammars: GrammarCompiler, deep: str) -> None:
    """Were the stack too small, the process would end here."""
    kind, source = DEEP[deep]
    assert len(source) > 0.7 * MAX_CHARACTERS
    grammars.matcher(Constraint(cast("ConstraintKind", kind), source))


def test_a_grammar_that_one_reply_has_worn_out_is_compiled_anew(grammars: GrammarCompiler, vocab: Vocab) -> None:
    """Replies share what the lexer has met, up to a limit for all of them."""
    constraint = Constraint("regex", "((a{0,100}){0,100}){0,100}|(b{0,100}){0,100}c")
    guide = grammars.matcher(constraint)
    (letter,) = tokens_of(vocab, "a")
    with pytest.raises(GrammarLost, match=r"any further: it is too large\.$"):
        walk(guide, [letter] * 200)
    assert matches(grammars.matcher(constraint), vocab, "bbbbbbc")


def test_what_is_allowed_agrees_with_what_is_listed(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("json_schema", '{"type": "object"}'))
    for token in tokens_of(vocab, '{"name": "Ot'):
        listed = guide.allowed()
        assert listed.shape == (vocab.n_tokens,)
        assert listed[token]
        for other in range(0, vocab.n_tokens, 7):
            assert guide.allows(other) == listed[other]
        guide.accept(token)
    assert not guide.is_over


def test_a_reply_is_over_where_nothing_can_follow(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("regex", "yes"))
    for token in tokens_of(vocab, "yes"):
        assert not guide.is_over
        guide.accept(token)
    assert guide.is_over


def test_what_may_not_come_is_not_accepted(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("regex", "yes"))
    with pytest.raises(GrammarLost):
        guide.accept(tokens_of(vocab, "no")[0])


def test_forced_tokens_spell_what_must_come(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("gbnf", 'root ::= "The quick brown fox " ("ran" | "slept")'))
    forced = guide.forced()
    text = b"".join(vocab.pieces[token] for token in forced).decode()
    assert "The quick brown fox ".startswith(text)
    assert len(text) > len("The quick")
    assert grammars.matcher(Constraint("regex", "(yes|no)")).forced() == []


def test_special_tokens_are_no_text(grammars: GrammarCompiler, vocab: Vocab) -> None:
    guide = grammars.matcher(Constraint("regex", "(?s:.*)"))
    special = [token for token, piece in enumerate(vocab.pieces) if not piece]
    assert special
    assert {token for token in special if guide.allows(token)} <= vocab.end_tokens


def test_threads_may_ask_at_once(vocab: Vocab) -> None:
    grammars = GrammarCompiler(vocab)
    found: list[bool] = []

    def ask(number: int) -> None:
        for turn in range(20):
            guide = grammars.matcher(Constraint("regex", f"{number}{turn % 3}"))
            found.append(matches(guide, vocab, f"{number}{turn % 3}"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(found)
