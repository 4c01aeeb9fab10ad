# SPDX-License-Identifier: GPL-2.0-or-later
"""The load of a cell: a load generator on each host of users, all with the same spec except for the users that they
play, and one set of records merged from theirs."""
import contextlib
import dataclasses
import shutil
import sys
import time

from ..base.paths import ROOT
from ..site.processes import Daemon
from .merge import merge

#: From the start of the load generator to t0: time to read its spec and import its modules, even on a busy machine.
LEAD_S = 4.0
#: Additional time for each further one.
LEAD_EACH_S = 1.0


class Generators:
    """The load generators of a cell. `directory` receives the logs and, by `merge`, the records."""

    def __init__(self, world, directory):
        self._world, self._directory = world, directory
        alone = len(world.groups) == 1
        self._labels = {host: '' if alone else f'-{host.role}' for host in world.groups}
        self.daemons = []       #: running ones
        self.lead_s = LEAD_S + LEAD_EACH_S * (len(world.groups) - 1)

    @contextlib.contextmanager
    def started(self, spec):
        """Runs them within the block. spec: the Spec for all of them. If an exception leaves the block, the records of
        each generator are kept as they are."""
        try:
            with contextlib.ExitStack() as stack:
                self.daemons = [stack.enter_context(self._start(spec, host, users))
                                 for host, users in self._world.groups.items()]
                yield
        except BaseException:
            for host, label in self._labels.items():
                for path in self._part(host).glob('*'):
                    shutil.copyfile(path, self._directory / f'{path.stem}{label}{path.suffix}')
            raise

    def _start(self, spec, host, users):
        label, out = self._labels[host], self._part(host)
        out.mkdir(parents=True)
        path = self._world.directory / f'load{label}.json'   # visible to the users' host
        names = {user.name for user in users}
        dataclasses.replace(spec, mine=tuple(user for user in spec.users if user.name in names),
                            out=str(out)).store(path)
        return Daemon(host, [sys.executable, '-m', 'fieldtrial.load', str(path)],
                      self._directory / f'loadgen{label}.log', cwd=ROOT,
                      command='load generator' + (label and f' of {host.role}'))

    def _part(self, host):
        return self._world.directory / 'load' / host.role

    def wait(self, timeout):
        """Waits for at most `timeout` seconds; whether all have ended. Raises TrialError if one has failed."""
        end = time.monotonic() + timeout
        running = [daemon for daemon in self.daemons if daemon.wait(max(0.0, end - time.monotonic())) is None]
        for daemon in self.daemons:
            if daemon.poll():
                daemon.check()
        return not running

    def last_words(self):
        """The last lines of their logs, for messages."""
        return '\n'.join(daemon.last_words() for daemon in self.daemons)

    def merge(self):
        """Merges their records into the cell's directory, as if one generator had run."""
        merge([self._part(host) for host in self._labels], self._directory)
