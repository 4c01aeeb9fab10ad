# SPDX-License-Identifier: GPL-2.0-or-later
"""Middlebox functions: processor time and link time, shared between real flows."""
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

import pytest

from background import wait_until
from edge_daemon import BUILD, PATIENCE, PLUGINS, EdgeDaemon, iperf, iperf_server, queue_rule
from site_in_namespaces import AF, SERVER

LARGE, SMALL = 5201, 5202       # ports
PAYLOAD = {LARGE: 1200, SMALL: 100}
HEADERS = 28                    # of IPv4 and UDP
RATE, SHARE = 20e6, 0.25        # of the link, bit/s; of a processor
#: Time for which a small packet occupies the processor's share: somewhat less than a large one the link (491 us).
WANTED_US = 300

CONFIGURATION = f'''
link rate={RATE:.0f}bit
queue number=7
scheduler {{scheduler}}
# Each flow has a part of the buffer: who sends more must not keep the other out of it.
aqm fred
limit 2000
class large
class small
class rest default=on
classify large protocol=udp to-port={LARGE}
classify small protocol=udp to-port={SMALL}
'''
FUNCTIONS = f'''
cpu share={100 * SHARE:g}%
function forward class=large {{forward}}
function encrypt class=small {{encrypt}}
'''
PROGRAM = BUILD / 'msfrs-middlebox'


class Middlebox(EdgeDaemon):
    """An msfrs-middlebox process."""

    def __init__(self, host, directory, text, functions):
        super().__init__(host, directory, text)
        self.functions = pathlib.Path(directory) / 'functions.conf'
        self.functions.write_text(functions)

    def command(self, *more):
        return [str(PROGRAM), '--plugins', str(PLUGINS), *more, str(self.file), str(self.functions)]

    def end(self):
        """Ends it regularly; returns its figures."""
        self.signal(signal.SIGTERM)
        said, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors
        self.process = None
        return said


@pytest.fixture
def middlebox(site, tmp_path):
    """Makes a Middlebox on the site's gateway, for traffic to the server; not yet started."""
    queue_rule(site.gateway, '-A')
    return lambda text, functions: Middlebox(site.gateway, tmp_path, text, functions)


@pytest.fixture(scope='module')
def calibrated():
    """The result of --calibrate on this machine: lines of configuration, and alpha and beta of each."""
    said = subprocess.run([PROGRAM, '--calibrate'], capture_output=True, text=True, timeout=60, check=True).stdout
    lines = dict(re.findall(r'^function (\w+) +(alpha=[\d.]+ +beta=[\d.]+)', said, re.M))
    assert set(lines) == {'forward', 'monitor', 'redundancy', 'encrypt'}
    return {name: (text, *map(float, re.findall(r'=([\d.]+)', text))) for name, text in lines.items()}


def test_calibration_stands_beside_the_papers_figures(calibrated):
    for name, (_, alpha, beta) in calibrated.items():
        assert alpha * 1500 + beta > 0, name


def packets(host):
    """Packets of each flow that have reached the server."""
    said = host.run('iptables', '-nvxL', 'INPUT')
    return {port: int(re.search(rf'^ *(\d+) .*dpt:{port}', said, re.M)[1]) for port in PAYLOAD}


@pytest.mark.parametrize('scheduler', ('drfq', 'atfq', 'drr'))
def test_dominant_shares(site, middlebox, calibrated, scheduler):
    """A flow of large packets, which need the link, and one of small packets, which are encrypted so often that they
    need the processor as much. Both send more than they can get."""
    length = {port: HEADERS + payload for port, payload in PAYLOAD.items()}
    text, alpha, beta = calibrated['encrypt']
    one_pass = alpha * length[SMALL] + beta
    passes = round(WANTED_US * SHARE / one_pass)
    needs = {LARGE: 8e6 * length[LARGE] / RATE, SMALL: passes * one_pass / SHARE}   # us of the dominant resource
    for port in PAYLOAD:
        site.server.run('iptables', '-A', 'INPUT', '-p', 'udp', '--dport', str(port))

    with middlebox(CONFIGURATION.format(scheduler=scheduler),
                   FUNCTIONS.format(forward=calibrated['forward'][0], encrypt=f'{text} passes={passes}')), \
            iperf_server(site.server, LARGE), iperf_server(site.server, SMALL):
        clients = [iperf(site.client, SERVER[4], '-u', '-l', payload, '-b', 8 * payload * rate, seconds=8, port=port)
                   for (port, payload), rate in zip(PAYLOAD.items(), (3000, 5500))]
        try:
            wait_until(lambda: min(packets(site.server).values()) > 300, 'both flows pass')
            before = packets(site.server)
            time.sleep(3)
            after = packets(site.server)
        finally:
            for client in clients:
                client.kill()
                client.communicate()
    had = {port: (after[port] - before[port]) * needs[port] for port in PAYLOAD}
    if scheduler == 'drr':
        assert had[SMALL] > 2 * had[LARGE], 'equal bytes are no equal shares'
    else:
        assert had[SMALL] == pytest.approx(had[LARGE], rel=0.1)


def test_functions_tell_what_they_took(site, middlebox, calibrated):
    """Packets with repeated payload, in the figures at the end."""
    with site.client.inside():
        client = socket.socket(AF[4], socket.SOCK_DGRAM)
    site.server.run('iptables', '-A', 'INPUT', '-p', 'udp', '--dport', '9')
    with client, middlebox('link rate=100Mbit\nqueue number=7\nscheduler drfq\n',
                           f'function redundancy class=all {calibrated["redundancy"][0]}\n') as box:
        for number in [*range(20), *range(20)]:
            client.sendto(random.Random(number).randbytes(1000), (SERVER[4], 9))
        wait_until(lambda: re.search(r'^ *40 .*dpt:9', site.server.run('iptables', '-nvxL', 'INPUT'), re.M),
                   'all have passed')
        said = box.end()
    line = re.search(r'^function redundancy of class all: (.*)$', said, re.M)[1]
    found = {name: float(value) for name, value in (figure.split() for figure in line.split(', '))}
    assert found['packets'] >= 40 and found['bytes'] >= 40 * 1028
    assert found['redundant_bytes'] >= 20 * 1000
    assert found['processor_seconds'] > 0 and found['estimated_seconds'] > 0
