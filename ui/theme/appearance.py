"""Light or dark, and how large text is: follows the system or the user's choice, and dresses the application."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from ui.theme.colours import use_colours
from ui.theme.stylesheet import stylesheet
from ui.theme.text_size import USUAL, set_text_percent
from ui.theme.text_style import TextStyle
from ui.theme.tokens import CONTRAST_DARK, CONTRAST_LIGHT, DARK, LIGHT, USUAL_ACCENT, Palette, Type, sized, with_accent

_FAMILIES = ("Inter", "Inter Variable", "Adwaita Sans", "Noto Sans", "Cantarell", "Ubuntu", "DejaVu Sans")
_MONO_FAMILIES = ("JetBrains Mono", "Cascadia Mono", "SF Mono", "Noto Sans Mono", "Ubuntu Mono", "DejaVu Sans Mono")
_POLISHED, _HAS_STYLE = Qt.WidgetAttribute.WA_WState_Polished, Qt.WidgetAttribute.WA_SetStyle
_GENERIC = ("sans serif", "sans", "sans-serif", "mono", "monospace", "")


class ThemeChoice(StrEnum):
    """What the user wants."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
    CONTRAST = "contrast"  # high, and light or dark like the system


class Appearance(QObject):
    """The palette and the size of text in use. Emits ``changed`` after the application was dressed."""

    changed = Signal(object)  # Palette

    def __init__(self, application: QApplication, choice: ThemeChoice = ThemeChoice.SYSTEM) -> None:
        super().__init__()
        self._application = application
        self._choice = choice
        self._family = _family(QFontDatabase.SystemFont.GeneralFont, _FAMILIES)
        self._mono_family = _family(QFontDatabase.SystemFont.FixedFont, _MONO_FAMILIES)
        self._percent, self._accent = USUAL, USUAL_ACCENT
        self._shown: tuple[Palette, int] | None = None
        self._sheet = ""
        self._left_out = set[QWidget]()  # hidden parts, which are dressed when they are shown
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._apply)
        if not application.styleSheet():  # else it was dressed before
            application.setStyle("Fusion")
        self._apply()

    @property
    def choice(self) -> ThemeChoice:
        """What the user wants."""
        return self._choice

    @property
    def accent(self) -> str:
        """The name of the accent."""
        return self._accent

    def wear(self, choice: ThemeChoice, accent: str, percent: int) -> None:
        """Follow another wish; ``accent`` is one of ``ACCENTS``, and text is ``percent`` of the design's sizes."""
        self._choice, self._accent, self._percent = choice, accent, percent
        self._apply()

    @property
    def percent(self) -> int:
        """How large text is, in percent of the design's sizes."""
        return self._percent

    @property
    def palette(self) -> Palette:
        """The palette that the choice and the system lead to."""
        if self._choice in (ThemeChoice.SYSTEM, ThemeChoice.CONTRAST):
            is_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        else:
            is_dark = self._choice is ThemeChoice.DARK
        if self._choice is ThemeChoice.CONTRAST:
            return CONTRAST_DARK if is_dark else CONTRAST_LIGHT
        return with_accent(DARK if is_dark else LIGHT, self._accent)

    @property
    def text_style(self) -> TextStyle:
        """How documents look."""
        return TextStyle(self.palette, self._family, self._mono_family, self._percent)

    def _apply(self) -> None:
        palette = self.palette
        if (palette, self._percent) == self._shown:
            return
        self._shown = palette, self._percent
        set_text_percent(self._percent)
        use_colours(palette)
        font = QFont(self._family)
        font.setPixelSize(sized(Type.BODY, self._percent))
        self._sheet = stylesheet(palette, self._percent, self._mono_family, QGuiApplication.isRightToLeft())
        if self._application.styleSheet() != self._sheet:  # to dress it again costs a look at every widget
            # To take a sheet off and put another on, Qt looks at each widget twice. To change it, it looks at each as
            # often as the widget is deep in the window: with all pages open 0.6 s instead of 0.05 s. So widgets are
            # told of neither, and dressed once in the end.
            seen = self._leave_out_unseen()
            _forget(seen)
            self._application.setStyleSheet("")
            if QApplication.font() != font:
                self._application.setFont(font)
            self._application.setPalette(_qt_palette(palette))
            self._application.setStyleSheet(self._sheet)
            _dress(seen)
        self.changed.emit(palette)

    def undress(self) -> None:
        """Take the style sheet off while a window is made, until ``dress_again``.

        With one, Qt looks at a part and all that is in it each time it is put into another: that took two thirds of the
        time.
        """
        self._application.setStyleSheet("")

    def dress_again(self) -> None:
        """Put the style sheet on that was taken off."""
        self._application.setStyleSheet(self._sheet)

    def dress(self, part: QWidget) -> bool:
        """Dress what is about to be shown, where it was hidden when the looks changed; return whether it was."""
        if part not in self._left_out:
            return False
        self._left_out.discard(part)
        part.removeEventFilter(self)
        _dress((part, *part.findChildren(QWidget)))
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Dress what is shown now."""
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget):
            self.dress(watched)
        return False

    def _leave_out_unseen(self) -> list[QWidget]:
        """Leave what nobody sees, as other pages, as it is until it is shown; return all other widgets."""
        seen = list[QWidget]()
        # A menu and what opens at a field are windows in a page: they are left out with it.
        waiting = [one for one in self._application.topLevelWidgets() if one.parentWidget() is None]
        while waiting:
            around = waiting.pop()
            seen.append(around)
            is_visible = around.isVisible()
            for part in around.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
                if part in self._left_out:
                    continue
                # A menu asks how large it will be before it is shown.
                if is_visible and part.isHidden() and not part.isWindow():
                    self._leave_out(part)
                else:
                    waiting.append(part)
        return seen

    def _leave_out(self, part: QWidget) -> None:
        self._left_out.add(part)
        part.installEventFilter(self)
        _forget((part, *part.findChildren(QWidget)))


def _forget(widgets: Iterable[QWidget]) -> None:
    """Let Qt pass over widgets when the style of the application changes, as over those that have one of their own.

    Their colours stay until they are dressed: to take each of them back would take longer than all the rest.
    """
    for widget in widgets:
        widget.setAttribute(_POLISHED, False)
        widget.setAttribute(_HAS_STYLE)


def _dress(widgets: Collection[QWidget]) -> None:
    """Dress widgets that were passed over in the style of the application."""
    for widget in widgets:
        widget.setAttribute(_HAS_STYLE, False)
    for widget in widgets:
        # A style sheet adds its colours to those that it finds: what another rule gave would stay.
        if widget.testAttribute(Qt.WidgetAttribute.WA_SetPalette):
            widget.setPalette(QPalette())
    for kind in (QEvent.Type.Polish, QEvent.Type.StyleChange):  # fonts are known before anything is measured
        for widget in widgets:
            QCoreApplication.sendEvent(widget, QEvent(kind))


def _family(kind: QFontDatabase.SystemFont, preferred: tuple[str, ...]) -> str:
    """Return the system's own font; where that is only a generic name, the first preferred one there is."""
    system = QFontDatabase.systemFont(kind).family()
    if system.casefold() not in _GENERIC:
        return system
    there = set(QFontDatabase.families())
    return next((family for family in preferred if family in there), system)


def _qt_palette(palette: Palette) -> QPalette:
    roles = {
        QPalette.ColorRole.Window: palette.canvas,
        QPalette.ColorRole.WindowText: palette.text,
        QPalette.ColorRole.Base: palette.raised,
        QPalette.ColorRole.AlternateBase: palette.panel,
        QPalette.ColorRole.Text: palette.text,
        QPalette.ColorRole.Button: palette.raised,
        QPalette.ColorRole.ButtonText: palette.text,
        QPalette.ColorRole.ToolTipBase: palette.raised,
        QPalette.ColorRole.ToolTipText: palette.text,
        QPalette.ColorRole.PlaceholderText: palette.muted,
        QPalette.ColorRole.Highlight: palette.selection,
        QPalette.ColorRole.HighlightedText: palette.text,
        QPalette.ColorRole.Link: palette.accent,
        QPalette.ColorRole.Accent: palette.accent,
    }
    made = QPalette()
    for role, colour in roles.items():
        made.setColor(role, QColor(colour))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(palette.muted))
    return made
