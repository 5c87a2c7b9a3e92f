"""What a person at a terminal sees while episodes run."""

import io
import re
import sys

from advsim.console import Bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(stream: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_bars_side_by_side_go_when_done(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Bars() as bars:
        bars.show("one", 1, 4)
        bars.show("other", 2, 9, "1 errors")
        bars.say("a line [bold]as it is[/bold]")
        bars.show("one", 4, 4)
        bars.show("other", 9, 9, "1 errors")
        terminal.truncate(0)
        bars.say("the last line")
    assert seen(terminal).strip("\0") == "the last line\n"


def test_bars_show_their_figures(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Bars() as bars:
        bars.show("one", 1, 4)
        bars.show("other", 2, 9, "812 tokens/s  3 errors")
        bars.say("a line [bold]as it is[/bold]")
    text = seen(terminal)
    assert "a line [bold]as it is[/bold]" in text
    assert re.search(r"one .* 1/4 ", text)
    assert re.search(r"other .* 2/9 .* 812 tokens/s  3 errors", text)


def test_where_no_terminal_is_only_lines_are_written(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bars() as bars:
        bars.show("one", 1, 4)
        bars.say("a line")
        bars.show("one", 4, 4)
    assert stream.getvalue() == "a line\n"
