# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest that shapes where the machine's kernel has no such queueing discipline."""
import pathlib
import socket
import threading
import time

import pytest

from fieldtrial.site import guest, shaping
from fieldtrial.site.host import HostError
from fieldtrial.site.netns import NetnsFabric
from fieldtrial.site.scenario import Scenario

HERE, THERE = '10.9.0.1', '10.9.0.2'
RATE_BPS, BYTES = 8e6, 2_000_000


class Cable(Scenario):
    """Two hosts and a guest in the cable between them."""

    def _build(self):
        fabric = self._stack.enter_context(NetnsFabric())
        self.directory = pathlib.Path(self._stack.enter_context(fabric.directory()))
        self.here, bump, self.there = map(fabric.host, ('gw', 'bump', 'users'))
        fabric.wire(self.here, 'lan0', bump, 'in0')
        fabric.wire(bump, 'out0', self.there, 'home0')
        for host, address, interface in ((self.here, HERE, 'lan0'), (self.there, THERE, 'home0')):
            host.run('ip', 'addr', 'add', f'{address}/24', 'dev', interface)
        self.guest = guest.Guest(self, bump, 'in0', 'out0')

    def transfer(self):
        """Sends BYTES from here to there. Seconds until the last has arrived."""
        with self.there.socket(socket.AF_INET, socket.SOCK_STREAM, source=THERE) as listening:
            listening.listen()
            sender = threading.Thread(target=self._send, args=listening.getsockname())
            sender.start()
            connection, _ = listening.accept()
            began, left = time.monotonic(), BYTES
            with connection:
                while left > 0 and (data := connection.recv(65536)):
                    left -= len(data)
            sender.join()
        assert left == 0
        return time.monotonic() - began

    def _send(self, address, port):
        with self.here.socket(socket.AF_INET, socket.SOCK_STREAM, peer=(address, port), timeout=60) as connection:
            connection.sendall(bytes(BYTES))


@pytest.fixture(scope='module')
def cable():
    if why := guest.why_not('namespaces') or guest.refused():
        pytest.skip(why)
    with Cable() as made:
        yield made


class User:
    cls, v4, v6 = 'any', THERE, 'fd00::2'


@pytest.mark.parametrize('qdisc', (shaping.cake, shaping.fq_codel))
def test_what_the_machines_kernel_lacks_shapes(cable, qdisc):
    qdisc(cable.guest, guest.PORT, RATE_BPS, [User], {'any': 1})
    took = cable.transfer()
    assert took > 0.95 * BYTES * 8 / RATE_BPS    # no faster; how much slower is the machine's affair
    said = cable.guest.run('tc', '-s', 'qdisc', 'show', 'dev', guest.PORT)
    assert ('cake' if qdisc is shaping.cake else 'fq_codel') in said
    largest = max(int(word) for line in said.splitlines() if line.split()[:1] in (['max_len'], ['maxpacket'])
                  for word in line.split()[1:2])
    assert largest <= shaping.FRAME             # merged segments would be one packet to it


def test_a_command_that_fails_has_its_words_in_the_message(cable):
    with pytest.raises(HostError, match=r'exit code \d+ in the guest from: tc qdisc add dev nothing(.|\n)*nothing'):
        cable.guest.run('tc', 'qdisc', 'add', 'dev', 'nothing', 'root', 'cake')


def test_its_end_is_noticed(cable):
    with Cable() as other:
        other.guest.check()
        other.guest._daemon.stop()
        with pytest.raises(Exception, match='the guest'):
            other.guest.check()
    cable.guest.check()
