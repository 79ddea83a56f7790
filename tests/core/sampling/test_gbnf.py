"""llama.cpp's grammars: what they mean, and what is said of those that cannot be read."""

from __future__ import annotations

import itertools
import re

import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from core.sampling.gbnf import to_lark
from core.values.request import MAX_CHARACTERS

_END = 256


class _Bytes:
    """A vocabulary of single bytes and an end."""

    bos_token_id = None
    eos_token_id = _END
    special_token_ids = (_END,)
    tokens = (*[bytes([byte]) for byte in range(256)], b"\xff<|end|>")

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


_TOKENIZER = LLTokenizer(TokenizerWrapper(_Bytes()), n_vocab=257, eos_token=[_END])


def matches(source: str, text: str) -> bool:
    """Return whether a grammar takes a whole text."""
    matcher = LLMatcher(_TOKENIZER, LLMatcher.grammar_from_lark(to_lark(source)), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = [*text.encode(), _END]
    return bool(matcher.validate_tokens(tokens) == len(tokens))


# From llama.cpp's folder grammars/.
ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""
JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        (ARITHMETIC, ["a+b=3\n", "x1 = (2*y)\nz=1\n"], ["a+=3\n", "a=3"]),
        (JSON, ['{"a": [1, -2.5e+1, null]}', "{}", '{"\\u00e9": "\\n"}'], ["{a}", "[1]", '{"a":}']),
        # What a rule takes does not depend on how much of it another one could take.
        ('root ::= num "\\n"\nnum ::= [0-9]+ [ \\n]*', ["3\n", "3 \n\n"], ["3"]),
        ('root ::= "a" "b" | "ab" "c"', ["ab", "abc"], ["a"]),
        ('root ::= "if" | [a-z]+ "!"', ["if", "iffy!"], ["iff"]),
        ('root ::= "1" [0-9] [0-9] | [0-9]+ "x"', ["123", "12345x"], ["12", "1234"]),
        # What is repeated can be repeated again.
        ('root ::= "x" ([0-9]+)? "y"', ["xy", "x12y"], ["x", "x1"]),
        ('root ::= ("a"?)+ "y"', ["y", "aay"], ["a"]),
        ('root ::= ("a"{2}){3}', ["aaaaaa"], ["aa", "aaaaa"]),
        ('root ::= (("a" "b")+)? "y"', ["y", "ababy"], ["aby" + "a"]),
        ('root ::= "a"{2,} "b"{0} "c"{0,2}', ["aa", "aaac"], ["a", "aab", "aaccc"]),
        # Characters.
        ('root ::= "\\u00e9" [\\u0400-\\u04ff] "\\U0001F600"', ["éж😀"], ["eж😀"]),
        ('root ::= . "b"', ["ab", "\nb", "éb"], ["b"]),
        ('root ::= [^"\\\\]+', ["a\nb"], ['"', "\\"]),
        ('root ::= [a\\]b]+ [/-] "/"', ["a]b-/", "a//"], ["/"]),
        ('root ::= "\\"" "\\t" "\\x41"', ['"\tA'], ['"A']),
        ('root ::= "a\nb"', ["a\nb"], ["ab"]),
        # Names and layout.
        ('root ::= my-rule my_rule 1st\nmy-rule ::= "a"\nmy_rule ::= "b"\n1st ::= "c"', ["abc"], ["aac"]),
        ('root ::= start Start\nstart ::= "s"\nStart ::= "t"', ["st"], ["ss"]),
        ('# of letters\r\nroot ::= "a" | # or\r\n  "b"\r\n', ["a", "b"], ["ab"]),
        ('root ::= ( | "a") "" "b"', ["b", "ab"], ["a"]),
        ("root ::=", [""], ["a"]),
    ],
)
def test_a_grammar_means_what_it_means_to_llama_cpp(source: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not matches(source, text)] == []
    assert [text for text in bad if matches(source, text)] == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "No rule is named root"),
        ('other ::= "a"', "No rule is named root"),
        ('root ::= "a"\n\nroot2 ::= x', "line 3: Rule 'x' not found"),
        ("hello", "line 1: Expected ::= behind the name hello"),
        ('root ::= "a"\n  | "b"', r"line 2: Expected the name of a rule, at '\| \"b\"'"),
        ('root ::= "abc', "has no end"),
        ("root ::= [abc", "has no end"),
        ("root ::= []", "is empty"),
        ("root ::= [z-a]", "ends before it begins"),
        ('root ::= ("a"', r"Expected \)"),
        ('root ::= "a")', r"Expected the end of the rule, at '\)'"),
        ('root ::= "a"{,3}', r"Expected \{n\}, \{n,\} or \{n,m\}, at '\{,3\}'"),
        ('root ::= "a"{3,1}', "second count is below the first"),
        ('root ::= "\\q"', "no such escape"),
        ('root ::= "\\x4"', "needs 2 hexadecimal digits"),
        ('root ::= "\\ud800"', "is no character"),
        ("root ::= <[1000]>", r"Expected the end of the rule, at '<\[1000\]>'"),
        ("root ::= " + "(" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(source: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        to_lark(source)


def test_a_grammar_of_many_rules_takes_no_time_to_speak_of() -> None:
    """Its rules are as many as the characters allow, and their names differ in capitals only."""
    names = ["".join(letters) for letters in itertools.product("aA", repeat=12)]
    rules = [f'{name} ::= "x" {names[index // 2]} | "y"' for index, name in enumerate(names)]
    source = "\n".join(["root ::= " + " | ".join(names[-200:]), *rules])
    assert len(source) < MAX_CHARACTERS * 2
    assert len(set(re.findall(r"^(\w+):", to_lark(source), re.MULTILINE))) == len(names) + 3
