"""The pieces of a reply, in the order in which a model writes them. Every protocol's events are made from these."""

from __future__ import annotations

from typing import NamedTuple


class ContentText(NamedTuple):
    """Text for the reader."""

    text: str


class ReasoningText(NamedTuple):
    """Text that the model thinks aloud before it answers."""

    text: str


class CallBegun(NamedTuple):
    """A tool call begins; its arguments follow, then ``CallEnded``, unless the reply is cut before."""

    id: str
    name: str


class CallArguments(NamedTuple):
    """More of the arguments of the call that has begun: together a JSON object as text, or its beginning."""

    text: str


class CallEnded(NamedTuple):
    """The call that has begun is whole."""


Piece = ContentText | ReasoningText | CallBegun | CallArguments | CallEnded
