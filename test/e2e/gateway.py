# SPDX-License-Identifier: GPL-2.0-or-later
"""The patched Squid on a slow link: its configuration, its reports and logs, and a check for errors in them."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site import meters, squidconf
from fieldtrial.site.netlink import ReceivedBytes
from fieldtrial.site.world import INTERCEPT_TLS_PORT, WAN

#: Patterns that must not occur in any log, whatever the test does to Squid.
HARM = re.compile(r'assertion failed|\bFATAL\b|\bBUG\b|xassert|terminated abnormally|dying from|Segment Violation|'
                  r'AddressSanitizer|LeakSanitizer|runtime error:|ERROR: msfrs|Unhandled exception|'
                  r'exception.*msfrs', re.IGNORECASE)
#: Sanitizer reports about unmodified Squid: an emulated offsetof, a copy of zero bytes, a histogram with 16 bins that
#: counts reads of 64 KB in the 17th.
STOCK = re.compile(r'mem_node\.cc.* within null pointer|rfc1035\.cc.* null pointer passed|'
                   r"http\.cc.* index 16 out of bounds for type 'int \[16\]'")
LOG_FIELDS = ('time client port method url status err_code err_detail class user wait total_wait exchanges '
              'exchange_wait bytes quanta window window_limit refusal over_quota tag').split()
LOG_FORMAT = ('%ts.%03tu %>a %>p %rm %ru %>Hs %err_code %err_detail %msfrs::class %msfrs::user %msfrs::wait '
              '%msfrs::total_wait %msfrs::exchanges %msfrs::exchange_wait %msfrs::bytes %msfrs::quanta '
              '%msfrs::window %msfrs::window_limit %msfrs::refusal %msfrs::over_quota %Ss')
OFF = {'scheduling': False, 'holding': 'no, because msfrs is off'}   #: mgr:msfrs while it is off
LISTENING = 'Accepting '      #: message in cache.log for each port at every start and reconfiguration
PORTS = 3                     #: number of ports in `configuration`
#: Keeps W+ at 1 for half an hour: a request in service holds back all others.
ONE_PLACE = 'msfrs_window law=paper interval=1min growth=1.01 reserve=0%'
#: The same; in addition, a request without a response stays in service for as long as a test may take. `configuration`
#: adds a short rtt= to the link, so that no receive window is larger than a quantum.
NARROW = f'{ONE_PLACE} patience=1h'
#: Weights hold over minutes, but these tests last seconds: no user may be far ahead or behind meanwhile.
SOON = 'msfrs_arbiter msf ahead=4096 user_ahead=32768 lag=4096 lead=32768 lead_time=2 favour=0'


def harm(text):
    """Lines of a log that report errors."""
    return [line for line in text.splitlines() if HARM.search(line) and not STOCK.search(line)]


#: Configuration of a gateway that does not decrypt.
SPLICE = 'ssl_bump peek greeting\nssl_bump splice all'


class Gateway:
    """Squid in a world. `directory` has its files; installation: which Squid; certificate: for its own TLS port."""

    def __init__(self, world, installation, certificate):
        self.world = world
        self.installation = installation
        self.directory = world.squid_directory()
        self._certificate = certificate
        self._daemon = None
        self.early = ()             #: configuration lines before all others; workers may have a port each
        self.expected = ()          #: texts of errors that the test causes on purpose, see check

    # Configuration and control.

    def configuration(self, *lines, on=True, weights=None, rate=None, interface=WAN, cache=False, default=None,
                      access=(), bump=SPLICE):
        """A whole squid.conf. lines: more directives. weights: class to weight; the classes' addresses are the world's.
        rate: bit/s, or the text after rate=; by default the link's. default: the default class, by default the last.
        access: lines before the msfrs_access lines of the classes. bump: rules for intercepted TLS; anything but SPLICE
        requires the lines of certificate_generator()."""
        text = ''.join(f'{line}\n' for line in (*self.early, *self.installation.lines)) + squidconf.stock(self.world)
        if cache:
            text = text.replace('cache deny all\n', '')
        text += (f'https_port {INTERCEPT_TLS_PORT} intercept ssl-bump '
                 f'generate-host-certificates={"off" if bump == SPLICE else "on"} '
                 f'tls-cert={self._certificate}\nacl greeting at_step SslBump1\n'
                 f'{bump}\n'
                 f'logformat e2e {LOG_FORMAT}\naccess_log stdio:{self.directory}/e2e.log logformat=e2e\n')
        if on:
            weights = weights or self.world.weights
            default = default or list(weights)[-1]
            said = rate if isinstance(rate, str) else f'{(rate or self.world.rate_bps) / 1000:.0f}kbit'
            text += f'msfrs on\nmsfrs_link rate={said}'
            text += f'{f" interface={interface}" if interface else ""}{" rtt=1ms" if NARROW in lines else ""}'
            text += ' shared\n' if len(self.world.gateways) > 1 else '\n'
            for name, weight in weights.items():
                text += f'msfrs_class {name} weight={weight:g}{" default" if name == default else ""}\n'
            text += ''.join(f'{line}\n' for line in access)
            for name in weights:
                if name in self.world.weights:      # the world defines the ACL of that name
                    text += f'msfrs_access {name} allow {name}\n'
        return text + '\n'.join(lines) + '\n'

    def certificate_generator(self):
        """The lines with which Squid can generate certificates, needed even if it never does."""
        program = self.installation.certificate_generator
        if not program.exists():
            pytest.skip(f'{program} is not there: this Squid was built without it, or has been moved')
        store = self.world.make_certificate_store(program)
        return (f'sslcrtd_program {program} -s {store} -M 4MB', 'sslcrtd_children 1')

    def start(self, *lines, **how):
        """Starts Squid with configuration(...), until it accepts requests."""
        self._daemon = self.world.start_squid(self.configuration(*lines, **how), self.installation.program,
                                              timeout=PATIENCE)
        return self

    @property
    def running(self):
        return self._daemon is not None and self._daemon.poll() is None

    def intercept_tls(self):
        """Redirects the users' port 443 to Squid, too."""
        self.world.intercept('--redirect-ports', '3129,3130', '--quic', 'allow')

    def command(self, *arguments, timeout=PATIENCE):
        """Runs squid on the gateway with the configuration file of the running one; CompletedProcess."""
        argv = [str(self.installation.program), '-f', str(self.directory / 'squid.conf'), *arguments]
        return subprocess.run(self.world.gateway.enter(argv), capture_output=True, text=True, timeout=timeout,
                              check=False)

    def write(self, *lines, **how):
        """Writes a new configuration, which Squid does not read yet."""
        (self.directory / 'squid.conf').write_text(self.configuration(*lines, **how))

    def reconfigure(self, *lines, **how):
        """`squid -k reconfigure` with configuration(...); returns when it is complete."""
        self.write(*lines, **how)
        def tell():
            done = self.command('-k', 'reconfigure')
            assert done.returncode == 0, done.stderr
        self.told(tell)

    def told(self, do, *arguments):
        """do(*arguments), which triggers a reconfiguration; returns its result when that is complete."""
        before = self.cache_log().count(LISTENING)
        said = do(*arguments)
        # Of all workers: a second reconfiguration before a worker's ports are open makes it fail and exit.
        ports = self._ports_of_a_worker * self.world.workers
        self.wait_until(lambda: self.cache_log().count(LISTENING) >= before + ports, 'listening again on all ports')
        return said

    def kill_worker(self, memory, number):
        """kill -9 of a worker (from 0) whose slot is in `memory`, a gateways.Memory; waits until its replacement
        accepts connections. Returns the bytes charged to its classes, which no other process has counted."""
        slot = memory.slot(number)
        pid, before = slot.pid, self.cache_log().count(LISTENING)
        os.kill(pid, signal.SIGKILL)
        charged = sum(served for served, _ in slot.classes.values())
        self.wait_until(lambda: slot.lives() and slot.pid != pid and
                        self.cache_log().count(LISTENING) >= before + self._ports_of_a_worker,
                        f'a worker in the place of {pid}')
        return charged

    @property
    def _ports_of_a_worker(self):
        return PORTS + any(line.startswith('http_port') for line in self.early)

    @property
    def ledger(self):
        """The name of the memory that its workers share."""
        return f'/{self.world.service}-msfrs_ledger.shm'

    def processes(self):
        """{pid: name} of Squid's processes."""
        children = pathlib.Path(f'/proc/{self._daemon.pid}/task/{self._daemon.pid}/children').read_text().split()
        kids = {int(child): pathlib.Path(f'/proc/{child}/cmdline').read_text().split('\0')[0] for child in children}
        return {self._daemon.pid: 'squid', **kids}

    def send(self, signum):
        os.kill(self._daemon.pid, signum)

    def stop(self, signum=signal.SIGINT, timeout=PATIENCE):
        """Stops Squid; returns its exit code."""
        if self._daemon.poll() is None:
            self.send(signum)
        code = self._daemon.wait(timeout)
        assert code is not None, f'Squid has not ended within {timeout:g} s of signal {signum}'
        return code

    # Reports and logs.

    def report(self):
        """mgr:msfrs, parsed."""
        return yaml.safe_load(meters.manager_report(self.world, 'msfrs', timeout=PATIENCE))

    def page(self, action):
        """A cache manager report as text."""
        return meters.manager_report(self.world, action, timeout=PATIENCE)

    def classes(self):
        """Class name to its figures in mgr:msfrs."""
        return {row['name']: row for row in self.report()['classes']}

    def totals(self, *names):
        """Sums of figures over all classes in one report: queued, paused, in_flight, silent, requests, bytes ..."""
        rows = self.report()['classes']
        return tuple(sum(row[name] for row in rows) for name in names)

    def total(self, name):
        return self.totals(name)[0]

    def wait_for(self, **figures):
        """Waits until the sums over all classes have these values, e.g. queued=3, in_flight=1."""
        self.wait_until(lambda: self.totals(*figures) == tuple(figures.values()),
                        lambda: f'{figures}; mgr:msfrs: {self.report()}')

    def wait_until(self, condition, what, timeout=PATIENCE):
        return wait_until(condition, what, timeout, self._daemon.check)

    def cache_log(self):
        path = self.directory / 'cache.log'
        return path.read_text(errors='replace') if path.exists() else ''

    def access_log(self, count=0):
        """Lines of access.log as dicts by LOG_FIELDS, without those of the cache manager; waits for `count` lines."""
        path = self.directory / 'e2e.log'

        def lines():
            text = path.read_text() if path.exists() else ''
            rows = [dict(zip(LOG_FIELDS, line.split(), strict=True)) for line in text.splitlines()]
            return [row for row in rows if 'squid-internal-mgr' not in row['url'] and row['client'] != '127.0.0.1']
        self.wait_until(lambda: len(lines()) >= count, lambda: f'{count} lines in access.log: {lines()}')
        return lines()

    @contextlib.contextmanager
    def received(self):
        """Yields a counter of the bytes that arrive on the link (a ReceivedBytes)."""
        counter = ReceivedBytes(self.world.gateway, WAN)
        try:
            yield counter
        finally:
            counter.close()

    # Checks at the end.

    def rest(self):
        """Waits until nothing is queued, paused or in service; W is 0 then."""
        self.wait_for(queued=0, paused=0, in_flight=0)
        # In a separate report: remaining bytes of a server may have taken slots for a moment in between.
        self.wait_until(lambda: self.report()['window']['outstanding'] == 0, lambda: f'W is 0: {self.report()}')

    def check(self):
        """Asserts that Squid's logs have no errors."""
        found = []
        for name in ('cache.log', 'squid.out'):
            path = self.directory / name
            if path.exists():
                found += [f'{name}: {line}' for line in harm(path.read_text(errors='replace'))
                          if not any(words in line for words in self.expected)]
        assert not found, '\n'.join(found)

    def end(self):
        """Stops Squid if it runs; it must exit cleanly."""
        if self._daemon is not None:
            code = self.stop()
            self.check()
            assert code == 0, f'exit code {code}; {self._daemon.last_words()}'
