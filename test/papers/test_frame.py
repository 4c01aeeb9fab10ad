# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame of `make papers`: the criteria of its verdict, and its output."""
import math

import pytest

from papers import __main__ as command
from papers.figures import diffserv
from papers.frame import Figure, Row, number, table


@pytest.mark.parametrize("row, meets", [
    (Row("x", "%", 10, 10), True),
    (Row("x", "%", 10, 10.001), False),
    (Row("x", "%", 10, 10.4, within=0.5), True),
    (Row("x", "%", 10, 9.4, within=0.5), False),
    (Row("x", "ms", 10, 3, bound="most"), True),
    (Row("x", "ms", 10, 10.1, bound="most"), False),
    (Row("x", "ms", 10, 11, bound="least"), True),
    (Row("x", "ms", 10, 9.9, bound="least"), False),
    (Row("x", "ns", 10, 99, bound="shown"), True),
    (Row("x", "", 0, 0), True),
    (Row("x", "", 10, math.nan, within=5), False),
    (Row("x", "", 10, math.nan, bound="most"), False),
    (Row("x", "", 10, math.nan, bound="least"), False),
    (Row("x", "", math.nan, 10, within=5), False),
])
def test_a_row_meets_the_paper_or_not(row, meets):
    assert row.meets == meets


def test_a_figure_meets_the_paper_if_all_its_rows_do():
    good, bad = Row("good", "%", 1, 1), Row("bad", "%", 1, 2)
    assert Figure("a-1", "A", [good, good]).meets
    assert not Figure("a-1", "A", [good, bad]).meets


def test_only_what_is_decided_has_a_verdict():
    good, bad, timing = Row("good", "%", 1, 1), Row("bad", "%", 1, 2), Row("timing", "ns", 1, 2, bound="shown")
    verdicts = [Figure("a-1", "A", rows).verdict for rows in ([timing], [good, timing], [bad, timing])]
    assert verdicts == ["SHOWN", "PASS", "FAIL"]
    assert table([timing]).split("\n")[1].split() == "timing 1 ns 2 ns +1 shown".split()


# None of these rows is a simulation: they time the machine, which other processes slow down.
@pytest.mark.parametrize("slower", [1, 10])
def test_how_busy_the_machine_is_decides_nothing(slower):
    def run(_what, rules):
        return [[50 * rules**0.1, rules * (slower if rules > 128 else 1)]]  # ns: range matching, linear search

    assert diffserv._rules(run).verdict == "SHOWN"


def test_a_figure_without_rows_is_refused():
    with pytest.raises(ValueError, match="a-1: a figure without a row compares nothing"):
        Figure("a-1", "A", [])


@pytest.mark.parametrize("value, text", [
    (0, "0"), (34.4, "34.4"), (86.8348, "86.835"), (0.0190123, "0.019012"), (10000, "10000"), (-0.2, "-0.2"),
    (1e-6, "1e-06"), (123456.7, "123457"), (9.99996, "10"), (1e9, "1e+09"), (math.nan, "nan"),
])
def test_numbers_are_read_at_a_glance(value, text):
    assert number(value) == text


def test_the_table_shows_both_numbers_the_difference_and_the_verdict():
    rows = [Row("share", "%", 34.4, 34.5, 0.5), Row("delay", "ms", 10, 12, bound="most", why="no idea")]
    lines = table(rows).split("\n")
    assert lines[0].split() == ["paper", "ours", "difference"]
    assert lines[1].split() == "share 34.4 % 34.5 % +0.1 ok (within 0.5)".split()
    assert lines[2].split() == "delay <= 10 ms 12 ms +2 OFF; no idea".split()


def test_a_plot_is_written_where_it_is_told(tmp_path):
    figure = Figure("a-1", "A", [Row("x", "%", 1, 1)], lambda canvas: canvas.subplots().plot([1, 2], [3, 4]))
    assert figure.draw(tmp_path) == tmp_path / "a-1.png"
    assert (tmp_path / "a-1.png").read_bytes().startswith(b"\x89PNG")
    assert Figure("a-2", "A", figure.rows).draw(tmp_path) is None


def run(monkeypatch, tmp_path, figures, *words):
    """Runs the command with one paper that has these figures."""
    module = type("Paper", (), {"figures": staticmethod(lambda context: iter(figures))})
    monkeypatch.setattr(command, "papers", lambda: ["some"])
    monkeypatch.setattr(command.importlib, "import_module", lambda *_: module)
    monkeypatch.setattr("sys.argv", ["papers", "--build", str(tmp_path), *words])
    return command.main()


def test_the_command_fails_if_a_figure_is_off(monkeypatch, tmp_path, capsys):
    good, bad = (Figure(f"a-{n}", f"A, figure {n}", [Row("x", "%", 1, n)]) for n in (1, 2))
    assert run(monkeypatch, tmp_path, [good]) == 0
    assert run(monkeypatch, tmp_path, [good, bad]) == 1
    printed = capsys.readouterr().out
    assert "PASS: A, figure 1" in printed and "FAIL: A, figure 2" in printed and "1 off:\n  A, figure 2" in printed
    assert "FAIL: A, figure 2" in (tmp_path / "papers" / "papers.txt").read_text()


def test_a_paper_that_is_not_there_is_refused(monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path, [], "other")
    assert "no paper 'other'; there are some" in capsys.readouterr().err
