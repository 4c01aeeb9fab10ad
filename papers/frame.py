# SPDX-License-Identifier: GPL-2.0-or-later
"""What every figure is made of: rows of figures, the paper's beside ours, and a plot."""
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: there need be no display
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the backend)


@dataclass
class Row:
    """One number of the paper and what it is here.

    what:   what is measured, in a few words
    unit:   of both numbers
    paper:  as printed in the paper, or read off its text
    ours:   measured
    within: how far ours may be from the paper's, in `unit`; 0: exactly equal (to 1e-9 of it)
    bound:  "" or "most" or "least": the paper's number is a bound, and ours may be anything below or above it.
            "shown": ours is a timing of this machine; it stands beside the paper's and decides nothing
    why:    a sentence for the reader where the two differ for a known reason
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
    plot:  draws into a matplotlib Figure; None where there is nothing to draw
    note:  how it was measured, where the paper leaves that open
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
        """PASS, FAIL, or SHOWN where no row decides anything."""
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
    """What a paper's module is given.

    build: the build's folder: programs stand in it, plugins in build/.libs
    quick: fewer packets, for a look while working; differences are then larger
    """

    build: Path
    quick: bool = False


def number(value: float) -> str:
    """Five digits that mean something, no exponent where it can be avoided."""
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
