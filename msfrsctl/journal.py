# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of `msfrsctl setup`, so that it can undo them: each file with its previous contents."""
import copy
import hashlib
import itertools
import json
import os

from .errors import CtlError

#: Seconds that a service may take to end and start again: Squid takes 31 with its default shutdown_lifetime, and its
#: unit may be stopped by force after 90.
PATIENCE = 120


def digest(text):
    return hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()


def _is_unit(path):
    return path.startswith('/etc/systemd/')


class Journal:
    """Changed files and started services, kept in one file that is written before each change."""

    def __init__(self, site):
        self._system = site.system
        self.path = site.journal_path
        text = self._system.read(self.path)
        try:
            self._kept = {'files': [], 'commands': [], 'units': {}, 'directories': [], 'before': None,
                          'answers': None,
                          **(json.loads(text) if text else {})}
        except ValueError:
            raise CtlError(f'{self.path} is not as msfrsctl wrote it; move it away') from None
        self._at_first = copy.deepcopy(self._kept)
        self._replaced = []     # (path, previous text) of this run's writes

    def __bool__(self):
        return bool(self._kept['files'] or self._kept['commands'] or self._kept['units'])

    @property
    def before(self):
        """The state of the machine before the first setup, or None."""
        return self._kept['before']

    def begin(self, state):
        """state: of the machine, as look() of state.py; kept at the first setup."""
        if not self:
            self._kept['before'] = state

    def wrote(self, path):
        """Whether a file is as we last wrote it."""
        text = self._system.read(path)
        return text is not None and any(entry['path'] == path and entry['digest'] == digest(text)
                                        for entry in self._kept['files'])

    def base(self, path):
        """What setup wrote last, without what a person had changed; None if it wrote no such file."""
        return next((entry.get('base') for entry in self._kept['files'] if entry['path'] == path), None)

    @property
    def answers(self):
        """The text of an answer file with those of the last setup, or None."""
        return self._kept['answers']

    @answers.setter
    def answers(self, text):
        self._kept['answers'] = text
        self._save()

    def write(self, path, text, mode=None, base=None):
        """Writes a file; its contents before our first change are kept. base: the text without what a person has
        changed in it, which --undo will not remove without a copy."""
        before = self._system.read(path)
        earlier = next((entry for entry in self._kept['files'] if entry['path'] == path), None)
        if earlier is None:
            earlier = {'path': path, 'before': before, 'digest': '', 'put': ''}
            self._kept['files'].append(earlier)
            if before is not None and text.endswith(before):
                earlier['put'] = text[:len(text) - len(before)]     # our only change is to prepend this
        earlier['base'] = text if base is None else base
        earlier['digest'] = digest(earlier['base'])
        self._replaced.append((path, before))
        directory = os.path.dirname(path)
        self._kept['directories'] += [made for made in self._system.missing(directory)
                                      if made not in self._kept['directories']]
        self._save()
        self._system.make_directory(directory)
        self._system.write(path, text, mode)

    def unit(self, name):
        """Keeps whether a unit is enabled and active, before its first change."""
        if name not in self._kept['units']:
            self._kept['units'][name] = {state: bool(self._system.run('systemctl', f'is-{state}', '--quiet', name))
                                         for state in ('enabled', 'active')}
            self._save()

    def started(self, undo, after=False):
        """undo: the words of a command that undoes the start; after: run it once the files are restored."""
        entry = {'words': list(undo), 'after': after}
        if entry not in self._kept['commands']:
            self._kept['commands'].append(entry)
            self._save()

    def undo(self, force):
        """Undoes everything, latest first; [(what, whether it succeeded)]. If somebody has changed a file since, a copy
        of it is kept, unless `force`. If we only added lines to it, these are removed and the rest stays."""
        commands, self._kept['commands'] = self._kept['commands'], []
        units, self._kept['units'] = self._kept['units'], {}
        changed_units = any(_is_unit(entry['path']) for entry in self._kept['files'])
        done = self._end(units)
        done += self._run(entry['words'] for entry in reversed(commands) if not entry['after'])
        while self._kept['files']:
            entry = self._kept['files'][-1]
            path, text, put = entry['path'], self._system.read(entry['path']), entry.get('put')
            changed = text is not None and digest(text) != entry['digest'] and not force
            if changed and put:
                done.append(self._put(path, text.replace(put, '', 1), 'as you had changed it, without the lines of '
                                      'setup'))
            else:
                if changed:
                    done.append((f'{self._save_copy(path, text)} has {path} as you had changed it', True))
                done.append(self._put(path, entry['before']))
            self._kept['files'].pop()
            self._save()
        self._remove_directories(self._kept.pop('directories'))
        self._kept['directories'] = []
        return done + self._start(units, changed_units, commands)

    def roll_back(self):
        """Undoes the changes of this run and keeps those of earlier ones; returns the same as `undo`."""
        commands = [entry for entry in self._kept['commands'] if entry not in self._at_first['commands']]
        units = {name: was for name, was in self._kept['units'].items() if name not in self._at_first['units']}
        done = self._end(units)
        done += self._run(entry['words'] for entry in reversed(commands) if not entry['after'])
        done += [self._put(path, before) for path, before in reversed(self._replaced)]
        self._remove_directories(made for made in self._kept['directories']
                                 if made not in self._at_first['directories'])
        touched, self._kept = self._kept['units'], self._at_first
        self._save()
        # Units of an earlier setup have run since, and read their files again.
        again = {name: units.get(name, {'enabled': True, 'active': True}) for name in touched}
        return done + self._start(again, any(_is_unit(path) for path, _ in self._replaced), commands)

    def _end(self, units):
        """Ends and disables units that were neither active nor enabled, the latest first."""
        return self._run(('systemctl', verb, name) for name, was in reversed(units.items())
                         for state, verb in (('active', 'stop'), ('enabled', 'disable')) if not was[state])

    def _start(self, units, reload, commands):
        """Once the files are as before: what was active reads them again."""
        active = [name for name, was in units.items() if was['active']]
        return self._run([*([('systemctl', 'daemon-reload')] if reload else []),
                          *(entry['words'] for entry in commands if entry['after']),
                          # In one command: some of them start others, and a second restart would kill that under way.
                          *([('systemctl', 'restart', *active)] if active else [])])

    def _remove_directories(self, made):
        for path in sorted(made, key=len, reverse=True):
            self._system.remove_empty(path)

    def _put(self, path, before, how='as before'):
        if before is None:
            self._system.remove(path)
            return f'{path} removed', True
        self._system.write(path, before)
        return f'{path} {how}', True

    def _save_copy(self, path, text):
        """Under a name that no `include` of *.conf matches."""
        copy = next(name for number in itertools.count() if not self._system.exists(
            name := f'{path}.saved{number or ""}'))
        self._system.write(copy, text, 0o600)
        return copy

    def _run(self, commands):
        return [(' '.join(words), bool(self._system.run(*words, timeout=PATIENCE))) for words in commands]

    def _save(self):
        if not self:
            self._system.remove(self.path)
            return
        self._system.make_directory(os.path.dirname(self.path))
        self._system.write(self.path, json.dumps(self._kept, indent=1) + '\n', 0o600)
