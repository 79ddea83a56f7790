"""Where Tab goes: through a window as it is read. Qt's own order is that in which the widgets were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QAbstractSpinBox, QLayout, QLineEdit, QScrollArea, QWidget

# Their parts are theirs alone.
_WHOLE = (QAbstractItemView, QAbstractSpinBox, QLineEdit)


def move_focus(window: QWidget, forward: bool, *, by_key: bool = True) -> bool:
    """Give the keyboard to the next widget of ``window``, or the one before; False where there is none."""
    order = list(in_reading_order(window))
    if not order:
        return False
    now = window.focusWidget()
    if now in order:
        at = order.index(now) + (1 if forward else -1)
    elif now is not None and (inside := [at for at, one in enumerate(order) if now.isAncestorOf(one)]):
        at = inside[0] if forward else inside[0] - 1  # a page that has the keyboard to scroll
    else:
        at = 0 if forward else -1
    widget = order[at % len(order)]
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    widget.setFocus(reason if by_key else Qt.FocusReason.OtherFocusReason)
    _scroll_to(widget)
    return True


def in_reading_order(widget: QWidget) -> Iterator[QWidget]:
    """Yield ``widget`` and what is in it, where Tab can go now."""
    if widget.isHidden() or not widget.isEnabled() or _is_empty(widget):
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    if isinstance(widget, _WHOLE):
        return
    for child in _children(widget):
        yield from in_reading_order(child)


def _is_empty(widget: QWidget) -> bool:
    """Whether it is a list of nothing, which could not show that it has the keyboard."""
    return isinstance(widget, QAbstractItemView) and widget.model() is not None and not widget.model().rowCount()


def _children(widget: QWidget) -> list[QWidget]:
    """Return the parts of a widget: those of its layout in its order, then the others by where they are."""
    layout = widget.layout()
    children = [child for child in widget.children() if isinstance(child, QWidget)]
    placed = list(_placed(layout, children)) if layout is not None else []
    others = [child for child in children if not child.isWindow() and child not in placed]
    begins = -1 if widget.isRightToLeft() else 1
    return placed + sorted(others, key=lambda child: (child.y(), begins * child.geometry().center().x()))


def _placed(layout: QLayout, children: Sequence[QWidget]) -> Iterator[QWidget]:
    """Yield those of the children that a layout places, in its order.

    The layout is not asked for its items: PySide keeps each, and takes another object that Qt makes at the place of
    one that is gone for that one.
    """
    placed: list[tuple[int, QWidget | QLayout]] = [(layout.indexOf(one), one) for one in children]
    placed += [(layout.indexOf(one), one) for one in layout.children() if isinstance(one, QLayout)]
    for at, one in sorted(placed, key=lambda found: found[0]):
        if at >= 0 and isinstance(one, QLayout):
            yield from _placed(one, children)
        elif at >= 0 and isinstance(one, QWidget):
            yield one


def _scroll_to(widget: QWidget) -> None:
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()
