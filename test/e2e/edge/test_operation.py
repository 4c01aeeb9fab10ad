# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge started, reloaded, stopped, killed and stalled while packets pass through it; and its messages."""
import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from background import wait_until
from edge_daemon import PATIENCE, PLUGINS, PROGRAM, ROOT, queue_rule
from site_in_namespaces import ANY, SERVER, sh

CONFIGURATION = '''
link rate=20Mbit
queue number=7 {queue}
scheduler {scheduler}
limit {limit}
{more}
control {control}
'''


SO_RCVBUFFORCE = 33     # asm-generic/socket.h; not in Python's socket module


@pytest.fixture
def made(edge, tmp_path):
    """Makes a daemon; keyword arguments replace lines of its configuration."""
    def text(**how):
        return CONFIGURATION.format(**{'queue': '', 'scheduler': 'drr', 'limit': 5000, 'more': '',
                                       'control': tmp_path / 'sock', **how})

    def make(**how):
        daemon = edge(text(**how))
        daemon.again = lambda **other: daemon.configure(text(**other))
        return daemon
    return make


class Stream:
    """Numbered datagrams at a steady rate from the client to the server, in threads of their own."""

    def __init__(self, site, per_second, size=400):
        self.sent, self.seen = 0, []
        self._size, self._gap = size, 1 / per_second
        self._running = self._sending = True
        with site.server.inside():
            self._in = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # A busy machine may delay the receiver, which must not lose datagrams.
        self._in.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        self._in.bind((ANY[4], 7000))
        self._in.settimeout(0.1)
        with site.client.inside():
            self._out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._out.connect((SERVER[4], 7000))
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]

    def _send(self):
        due = time.monotonic()
        while self._sending:
            self._out.send(self.sent.to_bytes(8, 'big').ljust(self._size, b'.'))
            self.sent += 1
            due += self._gap
            time.sleep(max(0, due - time.monotonic()))

    def _receive(self):
        quiet = 0
        while self._running or quiet < 10:      # a second without a packet: none is in flight any more
            try:
                self.seen.append(int.from_bytes(self._in.recv(2048)[:8], 'big'))
                quiet = 0
            except TimeoutError:
                quiet += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        wait_until(lambda: len(self.seen) > 20, 'the first datagrams')
        return self

    def rest(self):
        """Stops sending; packets in flight still arrive."""
        self._sending = False
        self._threads[0].join()

    def __exit__(self, *_):
        self._sending = self._running = False
        for thread in self._threads:
            thread.join()
        self._in.close()
        self._out.close()


def test_reloads_under_load_lose_nothing_and_keep_the_order(site, made):
    daemon = made()
    # 2,000 packets of 400 bytes a second are a third of the link at 20 Mbit/s, and exceed it at 5.
    with daemon, Stream(site, 2000) as stream:
        for scheduler, rate in (('sfq', 5), ('fifo', 30), ('drr quantum=600', 4), ('msfq', 50)):
            daemon.again(scheduler=scheduler)
            text = daemon.file.read_text().replace('20Mbit', f'{rate}Mbit')
            daemon.configure(text)
            assert daemon.ask('reload').stdout == 'reloaded\n'
            time.sleep(0.4)
        reloads = daemon.metrics()[('reloads_total',)]
    assert reloads == 4
    assert stream.seen == list(range(stream.sent))


def test_hang_up_reloads_and_a_mistake_leaves_all_as_it_was(site, made):
    daemon = made()
    with daemon, Stream(site, 500) as stream:
        daemon.again(scheduler='sfq')
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: daemon.metrics()[('reloads_total',)] == 1, 'the reload')
        daemon.again(scheduler='drr quantum=0')
        refused = sh(site.gateway, *daemon.command('--ask', 'reload'))
        daemon.again(queue='fail-open=off')
        restart = daemon.ask('reload')
        daemon.again()
        status = daemon.ask('status').stdout
    # The program that queries the daemon reads the file, too, to find the socket.
    assert refused.returncode == 2 and 'drr parameter quantum=0 is not allowed' in refused.stderr
    assert restart.returncode == 1 and 'restart msfrs-edge' in restart.stdout
    assert 'scheduler sfq' in status
    assert '1 reloads, 1 refused' in status
    assert stream.seen == list(range(stream.sent))


def test_a_clean_end_and_a_new_start_under_load_lose_nothing(site, made):
    daemon = made()
    with Stream(site, 1000) as stream:
        for _ in range(3):
            daemon.start()
            daemon.configure(daemon.file.read_text().replace('20Mbit', '3Mbit'))    # waiting packets pass at the end
            daemon.ask('reload')
            time.sleep(0.5)
            assert 'configuration' not in daemon.end()
            daemon.again()
        assert 'queue' not in site.gateway.run('cat', '/proc/net/netfilter/nfnetlink_queue')
    assert sorted(stream.seen) == list(range(stream.sent))


def test_killed_and_restarted_under_load_traffic_flows_on(site, made):
    daemon = made(limit=50)
    with Stream(site, 1000) as stream:
        daemon.start()
        time.sleep(0.3)
        daemon.kill()
        at = len(stream.seen)
        wait_until(lambda: len(stream.seen) > at + 300, 'packets without the daemon')     # --queue-bypass
        daemon.start()          # the socket of its predecessor does not prevent that
        passed = ('passed_packets_total', ('class', 'all'))
        wait_until(lambda: daemon.metrics()[passed] > 100, 'packets through the new one')
        daemon.end()
    # At most the packets in the queue were lost with it.
    assert stream.sent - len(stream.seen) <= 50


@pytest.mark.parametrize('queue', ('buffer=16KB', 'buffer=2MB', 'buffer=16KB conntrack=off'))
def test_an_overrun_is_counted_and_recovered_from(site, made, queue):
    """A small socket buffer, and a daemon that does not read: the kernel passes the packets that it cannot queue, and
    each of them is counted. The larger buffer has room for more than 2,048 packets and the limit."""
    daemon = made(queue=queue, limit=300)
    daemon.configure(daemon.file.read_text().replace('20Mbit', 'none'))
    with daemon, Stream(site, 2000) as stream:
        daemon.signal(signal.SIGSTOP)
        at = stream.sent
        wait_until(lambda: stream.sent > at + 4000, 'packets for a daemon that does not read')
        daemon.signal(signal.SIGCONT)
        passed = ('passed_packets_total', ('class', 'all'))
        wait_until(lambda: daemon.metrics()[('overruns_total', ('queue', '7'))] > 0, 'the overrun to be counted')
        before = daemon.metrics()
        assert before[('offered_packets_total', ('class', 'all'))] < stream.sent - 500      # the others bypassed it
        wait_until(lambda: daemon.metrics()[passed] > before[passed] + 500, 'packets after it')
        after = daemon.metrics()
        assert after[('offered_packets_total', ('class', 'all'))] - after[('queued_packets', ('class', 'all'))] == \
            after[passed]
        stream.rest()
        wait_until(lambda: len(stream.seen) == stream.sent, 'all to have come')     # fail-open
        last = daemon.metrics()
        unscheduled = last[('unscheduled_total', ('queue', '7'))]
        assert last[passed] + unscheduled == stream.sent
        assert unscheduled > 500 > last[('overruns_total', ('queue', '7'))]
    assert sorted(stream.seen) == list(range(stream.sent))


def test_a_full_queue_drops_what_its_limit_says(site, made):
    daemon = made(limit=20)
    daemon.configure(daemon.file.read_text().replace('20Mbit', '1Mbit'))
    with daemon, Stream(site, 1000) as stream:
        time.sleep(1)
        found = daemon.metrics()
    cls = ('class', 'all')
    assert 0 < found[('queued_packets', cls)] <= 20
    assert found[('offered_packets_total', cls)] == sum(
        found[(name, cls)] for name in ('dropped_packets_total', 'passed_packets_total', 'queued_packets'))
    assert len(stream.seen) < stream.sent * 0.6
    assert stream.seen == sorted(stream.seen)


def test_malformed_packets_harm_nobody(site, made):
    daemon = made(more='class a\nclass b default=on\nclassify a protocol=tcp kind=ack')
    dice = random.Random(4)
    with daemon, Stream(site, 200) as stream:
        with site.client.inside():
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with raw:
            for number in range(500):
                payload = dice.randbytes(dice.randrange(60))
                head = bytes((0x45, 0)) + (20 + len(payload)).to_bytes(2, 'big') + bytes(
                    (0, number & 255, dice.choice((0, 0x20, 1)), dice.randrange(8), 64, dice.randrange(256), 0, 0))
                with contextlib.suppress(OSError):
                    raw.sendto(head + bytes(4) + socket.inet_aton(SERVER[4]) + payload, (SERVER[4], 0))
        wait_until(lambda: len(stream.seen) > 100, 'datagrams beside them')
        assert daemon.metrics()[('passed_packets_total', ('class', 'b'))] > 400
    assert stream.seen == list(range(stream.sent))


def test_it_gives_up_all_rights_but_one(site, made):
    with made() as daemon:
        pid = daemon.process.pid
        with open(f'/proc/{pid}/status') as file:
            status = dict(re.findall(r'(\w+):\t(.*)', file.read()))
        assert set(status['Uid'].split()) == {'65534'} and status['Groups'].strip() == ''
        assert int(status['CapPrm'], 16) == int(status['CapEff'], 16) == 1 << 12        # CAP_NET_ADMIN
        assert status['NoNewPrivs'] == '1'


def test_its_threads_go_before_what_has_no_priority(site, made):
    permitted = sh(site.gateway, 'chrt', '--rr', '1', 'true').returncode == 0
    for queue, wanted in (('', permitted), ('realtime=off', False)):
        with made(queue=queue) as daemon:
            policies = {int(task.name): os.sched_getscheduler(int(task.name))
                        for task in pathlib.Path(f'/proc/{daemon.process.pid}/task').iterdir()}
            assert policies.pop(daemon.process.pid) == os.SCHED_OTHER
            assert set(policies.values()) == {os.SCHED_RR if wanted else os.SCHED_OTHER}
            assert ('no real-time priority' in daemon.end()) == (not queue and not permitted)


def without_right(*command):
    return ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin', *command]


def test_what_is_missing_is_said_in_a_sentence(site, made):
    daemon = made()
    assert daemon.refused(prefix=without_right()) == (
        1, 'msfrs-edge: NFQUEUE 7 cannot be bound: requires CAP_NET_ADMIN; start as root, or with '
           'AmbientCapabilities=CAP_NET_ADMIN\n')
    with daemon:
        other = made(control=str(daemon.file.parent / 'other'))
        assert other.refused() == (
            1, 'msfrs-edge: NFQUEUE 7 cannot be bound: another process has it; give each its own number, or end the '
               'other (/proc/net/netfilter/nfnetlink_queue lists them)\n')
        same = made()
        code, said = same.refused()
        assert code == 1 and said.endswith('sock: another msfrs-edge listens there\n')
    daemon.configure('link rate=1\n')
    assert daemon.refused() == (2, f'msfrs-edge: {daemon.file}:1: rate=1: not a number with a unit (bit, kbit, Mbit, '
                                   'Gbit); allowed are 1kbit to 1000Gbit, none and auto, as in 2Mbit\n')
    daemon.file.unlink()
    assert daemon.refused() == (2, f'msfrs-edge: {daemon.file}: cannot be opened: No such file or directory\n')


def test_check_says_what_is_wrong_or_nothing(site, made):
    daemon = made()
    done = sh(site.gateway, *daemon.command('--check'))
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
    daemon.again(more='flow host')
    done = sh(site.gateway, *daemon.command('--check'))
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == (f'msfrs-edge: {daemon.file}: flow host: the networks of the users are missing; add a line: '
                           'inside NETWORK...\n')


def test_plugins_are_listed_with_their_parameters():
    """Every plugin of the build, with the contents of its table."""
    done = subprocess.run([PROGRAM, '--plugins', PLUGINS], capture_output=True, text=True, check=True)
    for name in (path.stem for folder in ('sched', 'aqm') for path in (ROOT / 'src' / folder).glob('*.am')):
        assert re.search(rf'^{name}: \S', done.stdout, re.MULTILINE), done.stdout
    assert re.search('^ +quantum=1514 +a whole number from 1 to 1000000000 bytes  +bytes for a weight', done.stdout,
                     re.MULTILINE), done.stdout
    refused = subprocess.run([PROGRAM, '--check', '--plugins', PLUGINS], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and 'give one configuration file' in refused.stderr, refused


@pytest.mark.parametrize('line, said', (
    ('user nosuchuser', 'user nosuchuser: unknown on this machine; create it with useradd --system, or name another'),
    ('user root', 'user root: must not be root'),
    ('control {here}', 'control {here}: it is a directory; expected the path of a socket in one'),
    ('control {here}/edge.conf', 'control {here}/edge.conf: exists and is not a socket'),
    ('control {here}/edge.conf/sock', 'control {here}/edge.conf/sock: {here}/edge.conf is no directory'),
    ('control {here}/a/b/sock', 'control {here}/a/b/sock: there is no directory {here}/a, and a start creates '
                                'only {here}/a/b'),
))
def test_check_refuses_what_a_start_refuses(site, made, line, said):
    daemon = made()
    here = daemon.file.parent
    daemon.configure('link rate=1Mbit\nqueue number=7\n' + line.format(here=here) + '\n')
    said = f'msfrs-edge: {daemon.file}:3: {said.format(here=here)}\n'
    assert daemon.refused() == (2, said)
    done = sh(site.gateway, *daemon.command('--check'))
    assert (done.returncode, done.stdout, done.stderr) == (2, '', said)


@pytest.mark.parametrize('which', ('edge.conf', 'edge.rules'))
def test_a_file_that_a_reload_could_not_read_is_refused(site, made, which):
    daemon = made(more='rules edge.rules')
    (daemon.file.parent / 'edge.rules').write_text('all mark=be\n')
    (daemon.file.parent / which).chmod(0o600)
    said = (f'msfrs-edge: {daemon.file.parent / which}: user nobody, who reads it at a reload, cannot: '
            'Permission denied\n')
    assert daemon.refused() == (2, said)
    done = sh(site.gateway, *daemon.command('--check'))
    assert (done.returncode, done.stdout, done.stderr) == (2, '', said)


def test_the_control_sockets_directory_is_made_and_the_socket_removed(made, tmp_path):
    daemon = made(control=tmp_path / 'run' / 'sock')
    for _ in range(2):      # the second time the directory exists
        with daemon:
            assert 'scheduler drr' in daemon.ask('status').stdout
            assert (tmp_path / 'run').owner() == 'nobody' and (tmp_path / 'run/sock').is_socket()
            assert daemon.end() == ''
        assert not (tmp_path / 'run/sock').exists()


def test_a_control_socket_that_will_stay_is_announced(made, tmp_path):
    with made() as daemon:
        said = daemon.end()
    assert said == (f'msfrs-edge: control {tmp_path}/sock: the socket will stay there at the end, since user nobody may '
                    f'not remove it from {tmp_path}; a directory that does not exist yet is made for that user\n')
    assert (tmp_path / 'sock').is_socket()


def test_clients_that_never_say_what_they_want_do_not_block_others(made, tmp_path):
    with made() as daemon, contextlib.ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(tmp_path / 'sock'))
            client.sendall(b's')
        assert 'scheduler drr' in daemon.ask('status').stdout


def test_in_five_minutes(site, open_path):
    """The commands of the manual, verbatim except for the installation path and the interface."""
    manual = (ROOT / 'docs/user/edge.md').read_text().split('## In five minutes')[1].split('```sh\n')[1].split('```')[0]
    for theirs, ours in (('/opt/msfrs', str(ROOT / 'build/install')), ('/etc/msfrs', str(open_path / 'etc')),
                         ('eth0', 'out0')):
        assert theirs in manual
        manual = manual.replace(theirs, ours)
    (started,) = re.findall('(?m)^msfrs-edge .*&.*prints `ready`.*$', manual)
    wait = (f': > {open_path}/said\n'
            f'msfrs-edge {open_path}/etc/edge.conf > {open_path}/said &\n'
            f'until grep -x ready {open_path}/said; do sleep 0.1; done')
    (open_path / 'edge.sh').write_text('mount -t tmpfs none /run\n' + manual.replace(started, wait) +
                                       'kill $!\nwait\nls /run/msfrs-edge\n')
    done = sh(site.gateway, 'unshare', '--mount', 'bash', '-e', str(open_path / 'edge.sh'))
    assert (done.returncode, done.stderr) == (0, ''), done
    ready, up, status, *rest = done.stdout.splitlines()
    assert (ready, 'in place' in up or 'out0 to queue 0' in up) == ('ready', True)
    assert 'edge.conf: up' in status
    assert 'control.socket' not in rest


def test_several_queues_keep_one_rate(site, made):
    queue_rule(site.gateway, '-D')
    queue_rule(site.gateway, '-A', balance='7:8')
    # The kernel distributes packets by their addresses.
    targets = [f'198.18.2.{last}' for last in range(20, 32)]
    site.server.batch(f'address add {address}/24 dev eth0' for address in targets)
    daemon = made(queue='threads=2', limit=300)
    daemon.configure(daemon.file.read_text().replace('20Mbit', '8Mbit'))
    with site.server.inside():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((ANY[4], 7100))
    done = threading.Event()

    def flood():
        with site.client.inside():
            flows = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in targets]
        for flow, address in zip(flows, targets):
            flow.connect((address, 7100))
        while not done.is_set():
            for flow in flows:
                flow.send(bytes(972))
            time.sleep(0.005)
    thread = threading.Thread(target=flood)
    with sink, daemon:
        thread.start()
        try:
            queued = [('flows', ('queue', str(number))) for number in (7, 8)]
            wait_until(lambda: all(daemon.metrics()[name] > 0 for name in queued), 'flows in both queues')
            passed = ('passed_bytes_total', ('class', 'all'))
            wait_until(lambda: daemon.metrics()[('dropped_packets_total', ('class', 'all'))] > 100, 'full queues')
            first, begin = daemon.metrics()[passed], time.monotonic()
            time.sleep(2)
            last, end = daemon.metrics()[passed], time.monotonic()
        finally:
            done.set()
            thread.join(PATIENCE)
    assert 8 * (last - first) / (end - begin) == pytest.approx(8e6, rel=0.05)


def test_no_trace_is_left(site, made):
    with made() as daemon:
        assert os.path.exists(daemon.file.parent / 'sock')
        assert site.gateway.run('cat', '/proc/net/netfilter/nfnetlink_queue').split()[0] == '7'
    assert site.gateway.run('cat', '/proc/net/netfilter/nfnetlink_queue') == ''
