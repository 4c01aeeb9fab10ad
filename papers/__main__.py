# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m papers: prints the papers' figures next to ours, with the difference, and plots them."""
import argparse
import importlib
import pkgutil
import sys
import textwrap
import time
from pathlib import Path

from . import figures
from .frame import Context, table


def papers() -> list[str]:
    """Names of the papers: each module in papers/figures is one."""
    return sorted(module.name for module in pkgutil.iter_modules(figures.__path__))


def main() -> int:
    known = papers()
    parser = argparse.ArgumentParser(prog="papers", description=__doc__)
    parser.add_argument("paper", nargs="*", metavar="PAPER", help=f"one or more of: {', '.join(known)} (default: all)")
    parser.add_argument("--build", type=Path, default=Path("build/obj"),
                        help="folder of the build (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder for plots and tables (default: papers/ in the build)")
    parser.add_argument("--quick", action="store_true", help="fewer packets; differences are larger")
    args = parser.parse_args()
    for paper in args.paper:
        if paper not in known:
            parser.error(f"no paper '{paper}'; there are {', '.join(known)}")
    out = args.out or args.build / "papers"
    out.mkdir(parents=True, exist_ok=True)

    off, text = [], []

    def say(line: str) -> None:
        print(line, flush=True)
        text.append(line)

    for paper in args.paper or known:
        module = importlib.import_module(f".figures.{paper}", __package__)
        began = time.monotonic()
        for figure in module.figures(Context(args.build.resolve(), args.quick)):
            path = figure.draw(out)
            say(f"\n{figure.verdict}: {figure.title}")
            say(table(figure.rows))
            if figure.note:
                say(textwrap.fill(figure.note, 110, initial_indent="  ", subsequent_indent="  "))
            if path:
                say(f"  plot: {path}")
            if not figure.meets:
                off.append(figure.title)
        print(f"({paper}: {time.monotonic() - began:.0f} s)", flush=True)
    (out / "papers.txt").write_text("\n".join(text).lstrip() + "\n", encoding="utf-8")
    if off:
        print(f"\n{len(off)} off:\n  " + "\n  ".join(off))
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
