# SPDX-License-Identifier: GPL-2.0-or-later
"""squid.conf as Squid reads it, as far as msfrsctl needs it: directives with file and line, `include` followed."""
import fnmatch
import glob
import os
from collections import namedtuple

from .errors import WRONG, CtlError

DEEPEST = 16        #: as in Squid


class Line(namedtuple('Line', 'file number name words text')):
    """A directive. text: the whole line, without comments; words: a tuple of those after the name."""
    __slots__ = ()

    @property
    def where(self):
        return f'{self.file}:{self.number}'

    def option(self, name):
        """VALUE of a word NAME=VALUE, or None."""
        return next((word.partition('=')[2] for word in self.words if word.startswith(f'{name}=')), None)


class SquidConf:
    """All lines in the order in which Squid reads them, including those of `if` blocks whose condition is false."""

    def __init__(self, system, path):
        self.path = str(path)
        self.lines = []
        self._system = system
        if system.read(self.path) is None:
            raise CtlError(f'cannot read {self.path}; say where squid.conf is with --squid-conf FILE, and run msfrsctl '
                           f'as root', WRONG)
        self._read(self.path, 0)

    def _read(self, path, depth):
        text = self._system.read(path)
        if text is None or depth > DEEPEST:
            return
        for line in logical_lines(path, text):
            self.lines.append(line)
            if line.name == 'include':
                for pattern in line.words:
                    for file in sorted(glob.glob(pattern)):
                        self._read(file, depth + 1)

    def all(self, name):
        return [line for line in self.lines if line.name == name]

    def last(self, name):
        """The last line of a directive, or None."""
        return next(reversed(self.all(name)), None)

    def value(self, name, default):
        """The first word of a directive's last line."""
        line = self.last(name)
        return line.words[0] if line and line.words else default

    def covers(self, path):
        """The include line that matches a path, whether or not the file exists; or None."""
        return next((line for line in self.all('include')
                     if any(fnmatch.fnmatch(str(path), pattern) for pattern in line.words)), None)

    @property
    def directory(self):
        return os.path.dirname(os.path.abspath(self.path))


def logical_lines(path, text):
    """The directives of one file."""
    number, begun, pending = 0, 0, ''
    for number, raw in enumerate(text.splitlines(), 1):
        if not pending:
            begun = number
        pending += raw
        if pending.endswith('\\'):
            pending = pending[:-1]
            continue
        whole, pending = pending.strip(), ''
        if not whole or whole.startswith('#'):
            continue
        words = whole.split()
        if words[0] == 'logformat':     # a % code may begin with #
            kept = words
        else:
            kept = words[:next((at for at, word in enumerate(words) if word.startswith('#')), len(words))]
        yield Line(str(path), begun, kept[0], tuple(kept[1:]), whole if kept is words else ' '.join(kept))
