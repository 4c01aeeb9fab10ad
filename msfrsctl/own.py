# SPDX-License-Identifier: GPL-2.0-or-later
"""The file beside squid.conf that msfrsctl may write: the lines of `setup`, and the changes of `set`.

A comment above the lines of a change states when it ends and what they replaced. So configuration and state are
replaced together, no state can be lost, and lines that an administrator writes into the file are kept.
"""
import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass

from .errors import FAILED, CtlError
from .squidconf import logical_lines

NAME = 'msfrsctl.conf'
MARK = '# msfrsctl: '
HEAD = ('# SPDX-License-Identifier: GPL-2.0-or-later\n'
        '# Part of squid.conf. msfrsctl writes it; lines of yours are kept. The comments with { belong to changes of\n'
        '# `msfrsctl set`, which takes them back.\n')


@dataclass
class Change:
    """id: a number; what: rate, weight or boost; of: the class or user, '' for the rate; was, now: values; until:
    seconds since 1970, or None until it is undone; lines: number of lines below the comment that belong to it."""
    id: int
    what: str
    of: str
    was: str
    now: str
    until: float | None
    lines: int = 1


def path_of(site):
    """Path of the file, which need not exist; a CtlError if squid.conf has no include for it."""
    found = included(site.conf, site.system)
    if found is None:
        place = os.path.join(site.conf.directory, NAME)
        raise CtlError(f'{site.conf_path} does not include a file of msfrsctl, so nothing can be set; put this line '
                       f'before its first msfrs_ and http_access lines, after touch {place}: include {place}')
    return found


def included(conf, system):
    """The path beside squid.conf or in conf.d that a SquidConf includes, preferably one where the file exists; or None.
    """
    places = [place for place in (os.path.join(conf.directory, 'conf.d', NAME), os.path.join(conf.directory, NAME))
              if conf.covers(place)]
    return next((place for place in places if system.exists(place)), next(iter(places), None))


class OwnFile:
    """The lines of the file, changed in memory; `apply` writes them."""

    def __init__(self, site, path):
        self.path = path
        self._site = site
        self.before = site.system.read(path)
        self.lines = (HEAD if self.before is None else self.before).splitlines()

    def changes(self):
        """The changes in force, by the line of their comments: {index: Change}."""
        found = {}
        for index, line in enumerate(self.lines):
            if line.startswith(MARK + '{'):
                try:
                    found[index] = Change(**json.loads(line[len(MARK):]))
                except (ValueError, TypeError):
                    raise CtlError(f'{self.path}:{index + 1}: this comment is not as msfrsctl wrote it; put it right '
                                   f'or remove it: {line}') from None
        return found

    def new_id(self):
        return max((change.id for change in self.changes().values()), default=0) + 1

    def set_option(self, directive, first, option, value, change):
        """Changes the value of an option of a directive's line. first: the line's first word, or None. change: a Change
        without `was`, which is filled in. A change of the same option in force is replaced, and its `was` kept."""
        index = self._line(directive, first)
        match = re.search(rf'(?<=\s){option}=(\S+)', self.lines[index])
        if not match:
            raise CtlError(f'{self.path}:{index + 1}: {directive} has no {option}= that could be changed')
        change.was = match[1]
        earlier = self.changes().get(index - 1)
        self.lines[index] = self.lines[index][:match.start(1)] + value + self.lines[index][match.end(1):]
        if earlier and (earlier.what, earlier.of) == (change.what, change.of):
            change.was = earlier.was
            change.id = earlier.id
            self.lines[index - 1] = _comment(change)
        else:
            self.lines.insert(index, _comment(change))

    def _line(self, directive, first):
        """The index of a directive's line in this file; a CtlError if it is elsewhere."""
        def fits(line):
            return line.name == directive and (first is None or line.words[:1] == (first,))
        here = [line for line in logical_lines(self.path, '\n'.join(self.lines)) if fits(line)]
        if len(lines := [line for line in self._site.conf.lines if fits(line)]) > 1:
            raise CtlError(f'{lines[0].where} and {lines[1].where} both have {directive}, and msfrsctl cannot tell '
                           f'which is meant: change it there, then squid -k reconfigure')
        if here:
            return here[-1].number - 1
        there = next((line for line in self._site.conf.lines if fits(line)), None)
        if there:
            raise CtlError(f'{there.where} has the line {there.text}; msfrsctl changes only {self.path}: move that '
                           f'line there')
        known = ', '.join(line.words[0] for line in self._site.conf.all(directive) if line.words)
        raise CtlError(f'there is no line {directive}{" " + first if first else ""}'
                       + (f'; there are: {known}' if first and known else ''))

    def add_block(self, lines, change):
        """Inserts lines at the beginning, so that they precede the file's other lines."""
        change.lines = len(lines)
        at = next((index for index, line in enumerate(self.lines) if not line.startswith('#') or
                   line.startswith(MARK)), len(self.lines))
        self.lines[at:at] = [_comment(change), *lines]

    def latest_first(self):
        """The changes in force, in the order in which they can be undone."""
        return sorted(self.changes().values(), key=lambda change: -change.id)

    def undo(self, change):
        """Undoes a change; a CtlError if somebody has changed its lines since."""
        index = next(index for index, other in self.changes().items() if other.id == change.id)
        changed = CtlError(f'{self.path}:{index + 1}: the lines below this comment were changed by hand; remove the '
                           f'comment to keep them')
        below = self.lines[index + 1:index + 1 + change.lines]
        if change.what == 'boost':
            if not all(f'msfrsctl_boost_{change.id}' in line or f'msfrsctl-boost-{change.id} ' in line
                       for line in below):
                raise changed
            del self.lines[index:index + 1 + change.lines]
            return
        match = re.search(rf'(?<=\s){change.what}=(\S+)', below[0]) if below else None
        if not match or match[1] != change.now:
            raise changed
        self.lines[index + 1] = below[0][:match.start(1)] + change.was + below[0][match.end(1):]
        del self.lines[index]

    def undo_all(self):
        """Undoes all changes that can be undone, and writes the file, without a reconfiguration of Squid."""
        for change in self.latest_first():
            with contextlib.suppress(CtlError):
                self.undo(change)
        self._site.system.write(self.path, '\n'.join(self.lines) + '\n')

    def apply(self):
        """Writes the file, has Squid check its whole configuration, and reconfigures the running Squid. If Squid
        refuses the file, the previous one is restored. Returns a note for the user, or None."""
        site = self._site
        site.need_squid()
        site.system.write(self.path, '\n'.join(self.lines) + '\n')
        parsed = None
        try:
            parsed = site.control('parse')
        finally:
            if not parsed and self.before is None:
                site.system.remove(self.path)
            elif not parsed:
                site.system.write(self.path, self.before)
        if not parsed:
            raise CtlError(f'Squid refuses this, and all is as it was: {why_refused(parsed)}', FAILED)
        done = site.control('reconfigure')
        if done:
            return None
        return f'the running Squid was not told ({why_refused(done)}); it reads this when it starts'


def why_refused(done):
    """The message of a `squid -k` that failed."""
    said = re.findall(r'(?:FATAL|ERROR): (?!Bungled)(.*)', done.err) or [line for line in done.err.splitlines() if line]
    return said[0].strip() if said else f'exit code {done.code}'


def _comment(change):
    return MARK + json.dumps(asdict(change))
