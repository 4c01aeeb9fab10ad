# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps what a person has changed in a file that `msfrsctl setup` writes again: a merge of three texts."""
import difflib

from .own import MARK


def _about(line):
    """What a line sets: its directive, of a class that class's."""
    words = line.split()
    return words[:2] if words[:1] and words[0] in ('msfrs_class', 'msfrs_access', 'acl', 'http_access') else words[:1]


def merged(base, now, new):
    """(new text with the lines that differ between base and now, lines of `now` that cannot be kept). base: as setup
    wrote it last; now: as it is; new: as setup would write it. A line that a person changed or removed is so in the
    result, unless setup writes it differently itself: then setup's is there, and the person's is returned."""
    base, now, new = base.splitlines(), now.splitlines(), new.splitlines()
    place = {}          # index of a line of base: that of the same line in new
    for same in difflib.SequenceMatcher(None, base, new, autojunk=False).get_matching_blocks():
        place.update((same.a + n, same.b + n) for n in range(same.size))
    result, after, first, lost = {number: [line] for number, line in enumerate(new)}, {}, [], []

    def insert(lines, at):
        """Lines of a person before the line `at` of base: they stay below the nearest line above that is still there."""
        above = next((place[number] for number in range(at - 1, -1, -1) if number in place), None)
        (first if above is None else after.setdefault(above, [])).extend(lines)

    for what, i1, i2, j1, j2 in difflib.SequenceMatcher(None, base, now, autojunk=False).get_opcodes():
        if what == 'equal':
            continue
        at, theirs = i1, []
        for line in now[j1:j2]:
            n = next((n for n in range(at, i2) if _about(base[n]) == _about(line)), None)
            if n is None:
                theirs.append(line)
                continue
            for removed in range(at, n):
                result[place.get(removed)] = []
            at = n + 1
            if n in place:
                insert(theirs, n)
                result[place[n]] = [line]
            else:       # without the comment of `set` above it, which says what it replaced
                insert([line for line in theirs if not line.startswith(MARK)], n)
                lost.append(line)
            theirs = []
        for removed in range(at, i2):
            result[place.get(removed)] = []
        insert(theirs, i2)
    text = first
    for number in range(len(new)):
        text += result[number] + after.get(number, [])
    return '\n'.join(text) + '\n', [line for line in lost if line.strip()]
