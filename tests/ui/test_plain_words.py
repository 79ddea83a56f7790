"""Names are words on buttons and in tooltips, whatever they look like."""

from __future__ import annotations

from ui.widgets.elided_label import in_tip, on_button


def test_an_ampersand_names_no_key():
    assert on_button("R&D 7B\u202e") == "R&&D 7B\N{REPLACEMENT CHARACTER}"


def test_a_tooltip_has_no_marks():
    assert in_tip("plain\nwords") == "plain\nwords"
    assert in_tip("<b>fox</b>\nR&D") == "<qt>&lt;b&gt;fox&lt;/b&gt;<br>R&amp;D</qt>"
