# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulated gateway: files in a directory, and responses of programs and of Squid that the test sets."""
import io
import ipaddress
import json
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from msfrsctl.cli import main  # noqa: E402 (needs the path above)
from msfrsctl.system import Done, MISSING, Stat, System  # noqa: E402

BUILD = pathlib.Path(os.environ.get('MSFRS_TEST_BUILD', ROOT / 'build/obj'))
#: mgr:msfrs while gold's first user was served and two others waited behind it.
BUSY = (HERE / 'busy.yaml').read_text()
#: mgr:msfrs-metrics and mgr:msfrs-users at the same time.
METRICS = (HERE / 'busy.metrics').read_text()
USERS = BUSY.partition('\ntop_')[2]
#: The program of the build that explains.
WHY = str(BUILD / 'msfrs-why')
#: Bronze's quota, whose users move to a class with a control character in its name.
QUOTA = r'''    quota: {bytes: 5368709120, period: day, over: "bulk\u001b", ends_in: 12000, users: 3, users_over: 1, passed: 1}
    quota_users:
      - {user: "10.20.1.7", bytes: 6442450944}
      - {user: "198.18.16.1", bytes: 1048576}
'''
OFF = 'scheduling: false\nholding: no, because msfrs is off\n'
#: As in the example squid.conf, with the user.
FORMAT = ('%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %ssl::>sni %[un %Sh/%<a %msfrs::class %msfrs::wait '
          '%msfrs::total_wait %msfrs::quanta %msfrs::window/%msfrs::window_limit %msfrs::refusal %msfrs::over_quota')
NOW = 1_800_000_000.0


class Machine(System):
    """A System with simulated programs and Squid: `programs` ({first words: Done, text or a function}) and `pages`
    ({action: text, status or OSError}). Files are in `files` and below the test's directory."""

    def __init__(self, root):
        self.root = root
        self.programs, self.ran, self.files = {}, [], {}
        self.pages = {'msfrs': BUSY, 'msfrs-metrics': METRICS, 'msfrs-users': USERS}
        self.time, self.user, self.asked = NOW, 0, []
        self.stats, self.users, self.keys, self.questions, self.answers, self.said = {}, {}, [], [], [], []
        self.moving = {}        # {path: function that returns the text}
        self.wire = []          # (head, length) of packets to users; None: capturing is not allowed
        self.peers = []         # for each look at TCP connections: the (address, port) of their other ends
        self.downloads, self.downloaded = [], []    # samples or CtlErrors, in order; (URL, interface)
        self.room = 1 << 30     # bytes that every file system has left
        self.hangs = True       # whether connections to Squid are never accepted
        self.proxied = {}       # {URL: (status, fields, body) or OSError, or a function}

    def now(self):
        return self.time

    def monotonic(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds

    def euid(self):
        return self.user

    def key(self, seconds):
        self.time += seconds
        return self.keys.pop(0) if self.keys else ''

    def run(self, *argv, timeout=30, input=None):
        words = ' '.join(str(word) for word in argv)
        if argv[0] == WHY:      # the real program
            return super().run(*argv, timeout=timeout, input=input)
        self.ran.append(words)
        for begin, answer in sorted(self.programs.items(), key=lambda pair: -len(pair[0])):
            if words.startswith(begin):
                answer = answer(words) if callable(answer) else answer
                return answer if isinstance(answer, Done) else Done(0, answer)
        return Done(MISSING, '', f'{argv[0]}: not found')

    def read(self, path):
        if str(path) in self.moving:
            return self.moving[str(path)]()
        return super().read(path) if self._ours(path) else self.files.get(str(path))

    def exists(self, path):
        return super().exists(path) if self._ours(path) else str(path) in self.files

    def tail(self, path, most):
        return super().tail(path, most) if self._ours(path) else self.files.get(str(path), '')[-most:] or None

    def _ours(self, path):
        return str(path).startswith(str(self.root))

    def write(self, path, text, mode=None):
        if self._ours(path):
            super().write(path, text, mode)
        else:
            self.files[str(path)] = text

    def remove(self, path):
        if self._ours(path):
            super().remove(path)
        else:
            self.files.pop(str(path), None)

    def missing(self, path):
        return super().missing(path) if self._ours(path) else []

    def make_directory(self, path):
        if self._ours(path):
            super().make_directory(path)

    def ask(self, question, default):
        self.questions.append(question)
        return (self.answers.pop(0) if self.answers else '') or default

    def tcp_peers(self):
        return {(ipaddress.ip_address(to).packed, port) for to, port in (self.peers.pop(0) if self.peers else ())}

    def packets(self, interfaces, seconds, take):
        self.time += seconds
        for head, length in self.wire or ():
            take(head, length)
        return self.wire is not None and bool(interfaces)

    def download(self, url, interface, path):
        assert path == f'/sys/class/net/{interface}/statistics/rx_bytes'
        self.downloaded.append((url, interface))
        answer = self.downloads.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def say(self, text):
        self.said.append(text)

    def free(self, path):
        return self.room

    def stat(self, path):
        return self.stats.get(str(path)) or (Stat(0o644, 0, 0) if str(path) in self.files else super().stat(path))

    def ids(self, user):
        return self.users.get(user)

    def fetch(self, host, port, path, timeout=5.0):
        self.asked.append((host, port, path))
        answer = self.pages.get(path.rpartition('/')[2], 404)
        answer = answer() if callable(answer) else answer
        if isinstance(answer, OSError):
            raise answer
        return (answer, '') if isinstance(answer, int) else (200, answer)

    def ends(self, host, port, timeout):
        self.ran.append(f'ask {host} {port}')
        self.time += timeout if self.hangs else 0
        return not self.hangs

    def request(self, host, port, target, name, timeout):
        self.ran.append(f'GET {target}')
        answer = self.proxied.get(target, ConnectionRefusedError(111, 'Connection refused'))
        answer = answer() if callable(answer) else answer
        if isinstance(answer, OSError):
            raise answer
        return answer


class Gateway:
    """A Machine with a squid.conf, and msfrsctl run on it."""

    def __init__(self, root):
        self.root = root
        self.machine = Machine(root)
        self.conf = root / 'squid.conf'
        self.log = root / 'access.log'
        self.squid = root / 'squid'
        self.squid.write_text('')
        self.configure()

    def configure(self, *lines, format=FORMAT):
        self.conf.write_text('\n'.join((
            'http_port 3128', 'http_port 3129 intercept', f'logformat msfrs {format}',
            f'access_log stdio:{self.log} logformat=msfrs on-error=drop', *lines)) + '\n')

    def run(self, *argv):
        """(exit code, stdout)."""
        out = io.StringIO()
        engine = ['--engine', WHY] if argv[0] in ('why', 'status') else []
        code = main([*argv, *engine, '--squid-conf', str(self.conf), '--squid', str(self.squid)], system=self.machine,
                    out=out)
        return code, out.getvalue()

    def data(self, *argv):
        """What --json prints, parsed."""
        return json.loads(self.run(*argv, '--json')[1])


@pytest.fixture
def gateway(tmp_path):
    return Gateway(tmp_path)
