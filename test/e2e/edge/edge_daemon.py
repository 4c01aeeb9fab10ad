# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge on the gateway of a site, and TCP flows through it."""
import contextlib
import json
import os
import pathlib
import subprocess
import time

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from our_daemon import OurDaemon
from site_in_namespaces import sh

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get('MSFRS_TEST_BUILD', ROOT / 'build/obj'))
PROGRAM = BUILD / 'msfrs-edge'
PLUGINS = BUILD / '.libs'
#: Seconds that any expected event may take; far more than needed.
PATIENCE = 20.0


def queue_rule(host, action, number=7, *, chain='FORWARD', out='out0', bypass=True, balance=None):
    """Adds (-A) or deletes (-D) the rule that queues packets leaving by `out`, for both address families."""
    target = ('--queue-balance', balance) if balance else ('--queue-num', number)
    for tables in ('iptables', 'ip6tables'):
        host.run(tables, '-t', 'mangle', action, chain, '-o', out, '-j', 'NFQUEUE', *target,
                 *(('--queue-bypass',) if bypass else ()))


class EdgeDaemon(OurDaemon):
    """An msfrs-edge process."""

    def __init__(self, host, directory, text):
        super().__init__(host)
        self.file = pathlib.Path(directory) / 'edge.conf'
        self.configure(text)

    def configure(self, text):
        self.file.write_text(text)
        self.file.chmod(0o644)

    def command(self, *more):
        return [str(PROGRAM), '--plugins', str(PLUGINS), *more, str(self.file)]

    def refused(self, prefix=()):
        """Starts it with a configuration that it must refuse: (exit code, message)."""
        process = self.host.popen([*prefix, *self.command()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
        try:
            said = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert said[0] == ''
        return process.returncode, said[1]

    def ask(self, what):
        """A report from its control socket."""
        return sh(self.host, *self.command('--ask', what))

    def metrics(self):
        """Its counters: {(name, labels as a sorted tuple): value}."""
        families = text_string_to_metric_families(self.ask('metrics').stdout)
        return {(sample.name.removeprefix('msfrs_edge_'), *sorted(sample.labels.items())): sample.value
                for family in families for sample in family.samples}


@contextlib.contextmanager
def iperf_server(host, port=5201):
    """An iperf3 server on a host."""
    server = host.popen(['iperf3', '-s', '-p', str(port), '--forceflush'], stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            if 'listening' in line:
                break
        else:
            raise AssertionError('iperf3 does not listen')
        yield port
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def iperf(host, address, *options, seconds=4, port=5201):
    """Starts an iperf3 client with a JSON report: pass it to `received`."""
    return host.popen(['iperf3', '-c', address, '-p', str(port), '-t', str(seconds), '-J', *map(str, options)],
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def report(client, patience=60.0):
    """The report of an iperf3 client that is about to end."""
    said = client.communicate(timeout=patience)[0]
    found = json.loads(said)
    assert 'error' not in found, found['error']
    return found


def sent_bytes(host, interface='out0'):
    """Bytes sent by an interface, Ethernet headers included, and the time of this count."""
    with host.inside(), open('/proc/thread-self/net/dev') as file:
        lines = dict(line.split(':') for line in file.readlines()[2:])
    return int({name.strip(): fields for name, fields in lines.items()}[interface].split()[8]), time.monotonic()


def link_rate(host, seconds):
    """Bit/s sent by out0 from now on."""
    first, begin = sent_bytes(host)
    time.sleep(seconds)
    last, end = sent_bytes(host)
    return 8 * (last - first) / (end - begin)
