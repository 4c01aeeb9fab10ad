# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of every figure: rows with the paper's numbers next to ours, and a plot."""
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: no display needed
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the backend)


@dataclass
class Row:
    """One number of the paper and its counterpart here.

    what:   the measured quantity, as short text
    unit:   of both numbers
    paper:  as printed in the paper, or taken from its text
    ours:   measured
    within: allowed difference between ours and the paper's, in `unit`; 0: exactly equal (to 1e-9 of it)
    bound:  "" or "most" or "least": the paper's number is a bound, and ours may be anything below or above it.
            "shown": ours is a timing of this machine; it is shown next to the paper's and decides nothing
    why:    a sentence for the reader if the two differ for a known reason
    """

    what: str
    unit: str
    paper: float
    ours: float
    within: float = 0.0
    bound: str = ""
    why: str = ""

    @property
    def difference(self) -> float:
        return self.ours - self.paper

    @property
    def meets(self) -> bool:
        if self.bound == "shown":
            return True
        allowed = max(self.within, abs(self.paper) * 1e-9)
        if self.bound == "most":
            return self.difference <= allowed
        if self.bound == "least":
            return self.difference >= -allowed
        return abs(self.difference) <= allowed  # false for a NaN too


@dataclass
class Figure:
    """A figure, or a statement in a paper's text.

    key:   part of the file names, for example "atfq-09"
    title: "ATFQ, figure 9: utilisation of the resources"
    rows:  at least one
    plot:  draws into a matplotlib Figure; None if there is nothing to draw
    note:  how it was measured, if the paper leaves that open
    """

    key: str
    title: str
    rows: list[Row]
    plot: Callable[[plt.Figure], None] | None = None
    note: str = ""
    size: tuple[float, float] = field(default=(8.0, 4.5))

    def __post_init__(self):
        if not self.rows:
            raise ValueError(f"{self.key}: a figure without a row compares nothing")

    @property
    def meets(self) -> bool:
        return all(row.meets for row in self.rows)

    @property
    def verdict(self) -> str:
        """PASS, FAIL, or SHOWN if no row decides anything."""
        if all(row.bound == "shown" for row in self.rows):
            return "SHOWN"
        return "PASS" if self.meets else "FAIL"

    def draw(self, folder: Path) -> Path | None:
        """Writes folder/key.png."""
        if self.plot is None:
            return None
        figure = plt.figure(figsize=self.size, layout="constrained")
        try:
            figure.suptitle(self.title, fontsize="medium")
            self.plot(figure)
            path = folder / f"{self.key}.png"
            figure.savefig(path, dpi=110)
            return path
        finally:
            plt.close(figure)


@dataclass
class Context:
    """The arguments of a paper's module.

    build: the build folder, with the programs; plugins are in build/.libs
    quick: fewer packets, for a quick look during development; differences are then larger
    """

    build: Path
    quick: bool = False


def number(value: float) -> str:
    """Five significant digits, without an exponent where possible."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = 4 - (math.floor(math.log10(abs(value))) if value else 0)
        text = f"{value:.{max(digits, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.4g}"


def table(rows: Iterable[Row]) -> str:
    """Rows as aligned text: what, the paper's, ours, difference, verdict."""
    sign = {"most": "<= ", "least": ">= "}
    cells = [("", "paper", "ours", "difference", "")]
    for row in rows:
        verdict = "shown" if row.bound == "shown" else "ok" if row.meets else "OFF"
        if not row.bound and row.within:
            verdict += f" (within {number(row.within)})"
        unit = f" {row.unit}" if row.unit else ""
        difference = number(row.difference)
        cells.append((row.what, f"{sign.get(row.bound, '')}{number(row.paper)}{unit}", f"{number(row.ours)}{unit}",
                      difference if difference.startswith("-") else f"+{difference}",
                      verdict + (f"; {row.why}" if row.why else "")))
    widths = [max(len(line[n]) for line in cells) for n in range(4)]
    return "\n".join(
        f"  {line[0]:<{widths[0]}}  {line[1]:>{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]:>{widths[3]}}  {line[4]}"
        .rstrip() for line in cells)
