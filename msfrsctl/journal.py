# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl setup` has changed, so that it can be taken back: each file with what was there before."""
import copy
import hashlib
import json
import os

from .errors import CtlError


def digest(text):
    return hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()


class Journal:
    """Files and services that were changed. Kept in one file, written before each change."""

    def __init__(self, site):
        self._system = site.system
        self.path = site.journal_path
        text = self._system.read(self.path)
        try:
            self._kept = json.loads(text) if text else {'files': [], 'commands': []}
        except ValueError:
            raise CtlError(f'{self.path} is not as msfrsctl wrote it; move it away') from None
        self._at_first = copy.deepcopy(self._kept)
        self._replaced = []     # (path, text before) by this run

    def __bool__(self):
        return bool(self._kept['files'] or self._kept['commands'])

    def wrote(self, path):
        """Whether a file is as we left it."""
        text = self._system.read(path)
        return text is not None and any(entry['path'] == path and entry['digest'] == digest(text)
                                        for entry in self._kept['files'])

    def write(self, path, text, mode=None):
        """Writes a file; what was there before our first change of it is kept."""
        before = self._system.read(path)
        earlier = next((entry for entry in self._kept['files'] if entry['path'] == path), None)
        if earlier is None:
            earlier = {'path': path, 'before': before, 'digest': ''}
            self._kept['files'].append(earlier)
        earlier['digest'] = digest(text)
        self._replaced.append((path, before))
        self._save()
        self._system.make_directory(os.path.dirname(path))
        self._system.write(path, text, mode)

    def started(self, undo, after=False):
        """undo: the words of a command that takes back what was started; after: once the files are as before."""
        entry = {'words': list(undo), 'after': after}
        if entry not in self._kept['commands']:
            self._kept['commands'].append(entry)
            self._save()

    def undo(self, force):
        """Takes everything back, the latest first; [(what, whether it was done)]. A file that was changed since stays,
        unless `force`."""
        commands, self._kept['commands'] = self._kept['commands'], []
        done = self._run(entry['words'] for entry in reversed(commands) if not entry['after'])
        kept = []
        for entry in reversed(self._kept['files']):
            text = self._system.read(entry['path'])
            if text is not None and digest(text) != entry['digest'] and not force:
                kept.insert(0, entry)
                done.append((f'{entry["path"]}, which was changed since', False))
            else:
                done.append(self._put(entry['path'], entry['before']))
        self._kept['files'] = kept
        self._save()
        return done + self._run(entry['words'] for entry in commands if entry['after'])

    def roll_back(self):
        """Takes back what this run did, and leaves what an earlier one did; as `undo`."""
        commands = [entry for entry in self._kept['commands'] if entry not in self._at_first['commands']]
        done = self._run(entry['words'] for entry in reversed(commands) if not entry['after'])
        done += [self._put(path, before) for path, before in reversed(self._replaced)]
        self._kept = self._at_first
        self._save()
        return done + self._run(entry['words'] for entry in commands if entry['after'])

    def _put(self, path, before):
        if before is None:
            self._system.remove(path)
            return f'{path} removed', True
        self._system.write(path, before)
        return f'{path} as before', True

    def _run(self, commands):
        return [(' '.join(words), bool(self._system.run(*words))) for words in commands]

    def _save(self):
        if not self:
            self._system.remove(self.path)
            return
        self._system.make_directory(os.path.dirname(self.path))
        self._system.write(self.path, json.dumps(self._kept, indent=1) + '\n', 0o600)
