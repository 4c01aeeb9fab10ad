# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats the output of a command: in place on a terminal, otherwise one after the other."""
import contextlib
import json
import shutil
import sys
import termios
import tty

from .errors import DONE

ENTER, LEAVE = '\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l'
HOME, TO_LINE_END, TO_SCREEN_END = '\x1b[H', '\x1b[K', '\x1b[J'


def run(module, options, site, out):
    """Prints module.frames(options, site); with --json, one object a line."""
    with _terminal(out) if not options.json and out.isatty() else contextlib.nullcontext() as place:
        for data in module.frames(options, site):
            if options.json:
                print(json.dumps(data), file=out, flush=True)
            elif place:
                place(module.show(data))
            else:
                print(module.show(data), end='\n\n', file=out, flush=True)
    return DONE


@contextlib.contextmanager
def _terminal(out):
    """Yields a function that shows a text in place of the previous one; keys are read one by one, without echo."""
    before = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    if before:
        tty.setcbreak(sys.stdin)
    out.write(ENTER)
    try:
        yield lambda text: _draw(out, text)
    finally:
        out.write(LEAVE)
        out.flush()
        if before:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _draw(out, text):
    columns, rows = shutil.get_terminal_size()
    lines = [line[:columns] for line in text.splitlines()[:rows - 1]]
    out.write(HOME + ''.join(f'{line}{TO_LINE_END}\r\n' for line in lines) + TO_SCREEN_END)
    out.flush()
