# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-share with a real store: each gateway sees the other's state; and faults on the way."""
import os
import signal
import socket
import statistics
import threading
import time

import pytest

from background import wait_until
from gateways import PASSWORD, VERSION, SlowWay, Store, column, sh
from scripted_origin import make_certificate


def until(condition, what, patience=20.0):
    """Seconds until the condition is true."""
    start = time.monotonic()
    wait_until(condition, what, patience)
    return time.monotonic() - start


def test_one_sees_the_other_within_300_milliseconds(pair):
    a, b = pair
    a.segment.worker.set(limit=100)     # otherwise b would see a value limited to a's fair share
    took = []
    for n in range(1, 21):
        a.segment.worker.set(places=n, demand=n / 4)
        took.append(until(lambda: b.other().places == n and b.other().demand == n / 4, f'place {n} of a at b'))
    assert statistics.median(took) < 0.3, took


def test_each_is_due_its_part_of_the_window_while_both_wait(pair):
    a, b = pair
    a.segment.worker.set(places=0, waiting=50, demand=1)
    b.segment.worker.set(places=8, waiting=50, demand=3)
    wait_until(lambda: (a.other().places, b.other().places) == (6, 2), lambda: a.ask('status') + b.ask('status'))
    assert a.other().waiting == b.other().waiting == 50
    b.segment.worker.set(waiting=0, places=1)
    wait_until(lambda: a.other().places == 1, lambda: a.ask('status'))


def test_the_first_name_leads(pair):
    a, b = pair
    a.segment.worker.set(limit=12.5)
    wait_until(lambda: b.other().limit == 12.5, lambda: b.ask('status'))
    assert (b.other().rank, a.other().rank) == (0, 2)


def test_users_of_the_other_gateway(pair):
    a, b = pair
    key = 4711 << 20 | 5
    a.segment.user(key, column(0, 2, 3))
    wait_until(lambda: key in b.segment.users(), 'the user at b')
    slot = b.other().number
    a.segment.user(key, column(300, 3, 4))

    def seen():
        active, columns = b.segment.users()[key]
        return active == 1 << slot and columns[slot] == column(300, 3, 4)
    wait_until(seen, lambda: b.segment.users()[key])
    a.segment.user(key, column(300, 0, 0), active=False)
    wait_until(lambda: b.segment.users()[key][0] == 0, 'the user has no work')


def test_a_gateway_that_dies_leaves_its_share_and_comes_back(pair):
    a, b = pair
    b.segment.worker.set(places=5)
    for _ in range(2):
        a.other_has(places=5)
        b.kill()
        assert 1.5 < until(lambda: not a.other(), 'b is gone') < 10
        b.start()
    a.says('gateway b: is present', 3)
    assert [line for line in a.said() if line.startswith('gateway b')] == \
        ['gateway b: is present', *['gateway b: is gone: no message for 2 s', 'gateway b: is present'] * 2]


def test_a_gateway_that_ends_wants_nothing_more(pair):
    a, b = pair
    b.segment.worker.set(places=5, waiting=7, demand=2)
    wait_until(lambda: a.other().waiting == 7, lambda: a.ask('status'))
    b.end()
    assert (a.other().places, a.other().waiting, a.other().demand) == (0, 0, 0)
    assert not b.segment.gateways()     # and its slot is released at once
    assert not b.control.exists()


def test_without_the_store(pair, store):
    """The last shares hold, then the static ones; each change is logged once. Normal operation resumes soon after its
    return."""
    a, b = pair
    for gateway in pair:
        gateway.segment.worker.set(places=4, waiting=50, demand=1)
    wait_until(lambda: a.other().waiting == 50 and a.other().places == 4, lambda: a.ask('status'))
    store.end()
    wait_until(lambda: a.state() == 'last', lambda: a.ask('status'))
    assert (a.other().places, a.other().waiting) == (4, 50)
    wait_until(lambda: a.state() == b.state() == 'static', lambda: a.ask('status'))
    wait_until(lambda: (a.other().places, b.other().places) == (2, 6), lambda: a.ask('status'))
    before, start = a.other().received, time.monotonic()
    time.sleep(3)
    grown = (a.other().received - before) / (time.monotonic() - start)
    assert grown == pytest.approx(8e6 / 8 * 0.25, rel=0.15)     # as if b used its share
    store.start()
    back = until(lambda: a.state() == b.state() == 'together' and a.other().waiting == 50, lambda: a.ask('status'))
    assert back < 3
    lost = [line for line in a.said() if line.startswith('store')][1:]
    assert len(lost) == 3 and lost[0].endswith('; the last shares hold for 2 s')
    assert lost[1].endswith('; this gateway keeps to its static share of 75 % of the link')
    assert lost[2].startswith('store 127.0.0.1 port 6379: answers, after ')


def test_a_store_that_stops_answering(pair, store):
    a, _ = pair
    for _ in range(2):
        os.kill(store.process.pid, signal.SIGSTOP)
        wait_until(lambda: a.state() == 'static', lambda: a.ask('status'))
        os.kill(store.process.pid, signal.SIGCONT)
        assert until(lambda: a.state() == 'together', lambda: a.ask('status')) < 3
    assert len(a.said()) <= 9


def test_200_milliseconds_of_delay(host, store, make, stack):
    stack.enter_context(SlowWay(host, 6380, store.port, 0.2))
    a, b = make('a', 'b', port=6380), make('b', 'a')
    a.start()
    b.start()
    b.wait_for('a')
    a.wait_for('b')
    a.segment.worker.set(places=3)
    wait_until(lambda: b.other().places == 3, lambda: b.ask('status'))
    took = a.metrics()[('exchange_seconds',)]
    assert 0.4 < took < 1.5
    time.sleep(3)
    assert a.state() == 'together' and a.metrics()[('failures_total',)] == 0


def test_what_is_no_message_is_ignored(host, store, make):
    a = make('a', 'b').start()
    a.says('gateway b: has not reported yet')
    for value, said in ((b'garbage\x1b[2J', 'it is not a message of msfrs-share'),
                        (b'MSFRSGW\x03', 'it has version 3, not 2: another msfrs-share wrote it'),
                        (b'MSFRSGW\x02' + bytes(100), 'it has 108 bytes, less than the 124 of a head'),
                        (b'MSFRSGW\x02' + bytes(12_000_000), 'it has 11133 bytes; 0 classes and 0 users take 124')):
        store.do('SET', 'msfrs:test:b', value)
        a.says(f'gateway b: its message is ignored: {said}')
    store.do('DEL', 'msfrs:test:b')
    store.do('LPUSH', 'msfrs:test:b', 'x')
    a.says('gateway b: its message is ignored: it is not a message of msfrs-share', 2)
    time.sleep(1)
    assert a.state() == 'together' and not a.segment.gateways()
    assert len(a.said()) == 8
    assert a.metrics()[('other_messages_refused_total', ('gateway', 'b'))] > 5


def password_file(tmp_path, text):
    file = tmp_path / 'password'
    file.write_text(text + '\n')
    file.chmod(0o600)
    return f'password-file={file}'


def test_a_password(host, tmp_path, make):
    with Store(host, tmp_path, 6379, '--requirepass', PASSWORD):
        wrong = make('a', 'b', store=password_file(tmp_path, 'wrong horse')).start()
        wrong.says('store 127.0.0.1 port 6379: no answer for 2 s (refuses user or password: WRONGPASS); this gateway '
                   'keeps to its static share of 50 % of the link')
        right = make('b', 'a', store=password_file(tmp_path, PASSWORD)).start()
        right.says('store 127.0.0.1 port 6379: answers')
        none = make('c', 'a').start()
        none.says('store 127.0.0.1 port 6379: no answer for 2 s (refuses GETRANGE: NOAUTH Authentication required.); '
                  'this gateway keeps to its static share of 50 % of the link')
        told = ''.join(g.ask('status') + g.ask('metrics') + g.log.read_text() for g in (wrong, right, none))
    assert 'horse' not in told


def test_tls(host, tmp_path, make):
    good, other = tmp_path / 'store.pem', tmp_path / 'other.pem'
    make_certificate(good, 'store.test')
    make_certificate(other, 'store.test')
    options = ('--tls-port', '6390', '--tls-cert-file', good, '--tls-key-file', good, '--tls-ca-cert-file', good)
    with Store(host, tmp_path, 6379, *map(str, options)):
        ours = f'tls=on name=store.test ca={good} certificate={good} key={good}'
        gateway = make('a', 'b', port=6390, store=ours).start()
        gateway.says('store 127.0.0.1 port 6390: answers')
        for name, store, why in (('b', ours.replace(f'ca={good}', f'ca={other}'), 'self-signed certificate'),
                                 ('c', ours.replace('store.test', 'else.test'), 'hostname mismatch')):
            refused = make(name, 'a', port=6390, store=store).start()
            refused.says('store 127.0.0.1 port 6390: no answer for 2 s (has an untrusted certificate: '
                         f'{why}); this gateway keeps to its static share of 50 % of the link')
        plain = make('d', 'a', port=6390).start()
        wait_until(lambda: plain.state() == 'static', lambda: plain.said())


def test_another_server_than_a_store(host, make, stack):
    with host.inside():
        listener = stack.enter_context(socket.create_server(('127.0.0.1', 6379)))

    def answer():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n')
    thread = threading.Thread(target=answer)
    thread.start()
    stack.callback(thread.join)
    stack.callback(listener.shutdown, socket.SHUT_RDWR)
    a = make('a', 'b').start()
    a.says('store 127.0.0.1 port 6379: no answer for 2 s (sends an invalid reply); this gateway '
           'keeps to its static share of 50 % of the link')
    assert len(a.said()) <= 3


def test_a_segment_that_comes_later_and_goes(host, store, make):
    a, b = make('a', 'b'), make('b', 'a')
    b.segment.worker.set(places=5)
    a.segment.remove()
    a.start()
    b.start()
    a.says(f'segment {a.segment.name}: is not mapped: shared memory {a.segment.name}: cannot be opened: No such file '
           'or directory; the program that creates it does not run')
    a.segment.make()
    a.says(f'segment {a.segment.name}: is mapped')
    a.other_has(places=5)
    a.segment.make()        # Squid was restarted
    a.other_has(places=5)
    a.segment.worker.set(places=2)
    b.other_has(places=2)


def test_a_segment_of_another_version(host, store, make):
    a = make('a', 'b')
    a.segment.words[1] = 9
    a.start()
    a.says(f'segment {a.segment.name}: is not mapped: shared memory {a.segment.name}: it has version 9, and this '
           f'program knows version {VERSION}')
    time.sleep(1.5)
    assert len([line for line in a.said() if line.startswith('segment')]) == 1


def test_stopped_for_a_while(pair):
    """SIGSTOP: its slots expire; afterwards it takes them again, or others."""
    a, b = pair
    b.segment.worker.set(places=5)
    os.kill(a.process.pid, signal.SIGSTOP)
    wait_until(lambda: not a.segment.gateways(), 'the slot is dead')
    wait_until(lambda: not b.segment.gateways(), 'a is gone at b')
    os.kill(a.process.pid, signal.SIGCONT)
    a.other_has(places=5)
    wait_until(b.other, lambda: a.ask('status'))


def test_check(host, tmp_path, make):
    gateway = make('a', 'b', store=password_file(tmp_path, PASSWORD))
    assert (lambda done: (done.returncode, done.stdout, done.stderr))(sh(host, *gateway.command('--check'))) == \
        (0, '', '')
    good = gateway.file.read_text()
    for text, said in ((good.replace('share=50%', 'share=200%'), ':2: share=200%: allowed are 1% to 99%'),
                       (good.replace('user nobody', 'user root'), ':7: user root: must not be root'),
                       (good + 'peer x\n', ':8: "peer": unknown; a line begins with link, gateway, other, store, '
                                           'segment, control and user')):
        gateway.configure(text)
        for words in (('--check',), ()):
            done = sh(host, *gateway.command(*words))
            assert (done.returncode, done.stdout, done.stderr) == (2, '', f'msfrs-share: {gateway.file}{said}\n')
    gateway.configure(good)
    (tmp_path / 'password').chmod(0o644)
    done = sh(host, *gateway.command('--check'))
    assert done.returncode == 2 and 'everybody may read it' in done.stderr and PASSWORD not in done.stderr


def test_rights_are_given_up(pair):
    status = dict(line.split(':\t', 1) for line in open(f'/proc/{pair[0].process.pid}/status') if ':\t' in line)
    assert status['CapEff'].strip() == '0000000000000000' and status['NoNewPrivs'].strip() == '1'
    assert '0' not in status['Uid'].split()
