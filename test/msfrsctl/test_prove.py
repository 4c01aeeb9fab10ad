# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl prove: turns scheduling off and on, restores it whatever happens, and compares only what can be compared."""
import os
import signal
import sys

import pytest
from conftest import BUSY, OFF

from msfrsctl import alternation, comparison
from msfrsctl.accesslog import Log, Record, since
from msfrsctl.alternation import BEYOND
from msfrsctl.comparison import Sample, Slice
from msfrsctl.system import Done, System

RATE = 20_000_000
RX = '/sys/class/net/wan0/statistics/rx_bytes'
LINE = 'msfrs_link rate=20Mbit interface=wan0 shared'
AUTO = 'msfrs_link rate=auto min=2Mbit max=50Mbit interface=wan0'


class Line:
    """A gateway whose Squid reads its file at a reconfiguration. load: the part of the rate that users take. While
    scheduling is off, the queue at the provider is long, and small objects take longer."""

    def __init__(self, gateway, link):
        self.gateway, self.machine = gateway, gateway.machine
        self.own = gateway.root / 'msfrsctl.conf'
        self.before = f'msfrs on\n{link}\nmsfrs_class gold weight=4\n'
        self.own.write_text(self.before)
        gateway.conf.write_text(f'include {self.own}\n{gateway.conf.read_text()}')
        self.k = f'{gateway.squid} -f {gateway.conf} -k'
        self.machine.programs.update({self.k: '', f'{self.k} reconfigure': self.reconfigure,
                                      'ping -n': lambda words: self.ping()})
        self.machine.pages['msfrs'] = self.report
        self.machine.moving[RX] = lambda: str(int(self.received()))
        self.load, self.received_by, self.lines, self.seen = 0.95, self.machine.time, 0, []
        self.at_sleep = lambda: None
        self.machine.sleep = self.sleep
        self.reconfigure()

    def reconfigure(self, _words=''):
        self.off = any(rate in self.own.read_text() for rate in ('=600Mbit', '=1500Mbit'))
        self.seen.append(self.off)
        return ''

    def received(self):
        return (self.machine.time - 1_800_000_000) * RATE * self.load / 8

    def report(self):
        had = int(self.received())
        report = BUSY
        for old, new in (('rate: 2000000', f'rate: {BEYOND * RATE if self.off else RATE}'), ('quantum: 0', 'quantum: 16384'),
                         ('queue: null', f'queue: {0.4 if self.off else 0.03}'),
                         ('    bytes: 0', f'    bytes: {had}')):
            report = report.replace(old, new, 1)
        return report

    def ping(self):
        return f'64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time={412.0 if self.off else 38.5} ms\n'

    def sleep(self, seconds):
        """Each second has two requests, each of which ends at once."""
        self.machine.time += seconds
        with open(self.gateway.log, 'a') as log:
            while self.lines < (self.machine.time - 1_800_000_000) * 2:
                took = 900 if self.off else 100
                ended = 1_800_000_000 + self.lines / 2 + took / 1000
                log.write(f'{ended:.3f} {took:6} 10.20.1.7 TCP_MISS/200 5000 GET http://a.test/ - - '
                          f'HIER_DIRECT/192.0.2.9 gold 0 0 1 1/2.00 - -\n')
                self.lines += 1
        self.at_sleep()

    def run(self, *words):
        return self.gateway.run('prove', '--seed', '7', *words)


@pytest.fixture
def line(gateway):
    return Line(gateway, LINE)


def test_off_and_on_by_turns(line):
    code, said = line.run('--ping', '192.0.2.1')
    assert code == 0, said
    assert '10 pairs of slices of 30 s' in said and 'link: 20 Mbit/s at wan0, busy (80% used or more) for 100%' in said
    rows = [' '.join(row.split()) for row in said.splitlines()]
    assert {'link used 95.0% 95.0% 0 of 10 no difference', 'queue at the provider, median 400 ms 30 ms 10 of 10 better',
            'ping, median 412 ms 38 ms 10 of 10 better', 'pings lost: 0.0% off, 0.0% on',
            'small objects, p95 900 ms 100 ms 10 of 10 better',
            'gold off 400 430.3 MB 19 Mbit/s 400 900 ms 900 ms 900 ms',
            'gold on 400 430.3 MB 19 Mbit/s 400 100 ms 100 ms 100 ms 10 of 10 better',
            'silver on 0 0 B 0 bit/s 0 - - - - not judged'} < set(rows)
    assert ' '.join(rows).endswith(
        'With scheduling better: queue at the provider, median; ping, median; ping, p95; small objects, median time; '
        'small objects, p95; objects of any size, mean time.')
    assert line.own.read_text() == line.before and not line.off
    assert all(len(row) <= 120 for row in said.splitlines())


def test_as_json(line):
    data = line.gateway.data('prove', '--minutes', '6')
    assert data['pairs'] == 6
    assert data['measures']['queue'] == {'off': 0.4, 'on': 0.03, 'better': 6, 'of': 6, 'so': 'better'}
    assert data['measures']['rtt']['so'].startswith('not judged: 0 of 6 pairs have enough samples')
    assert data['off']['classes']['gold']['small'] == data['on']['classes']['gold']['small'] == 6 * 40
    assert 0.94 < data['on']['used'] < 0.96 and data['on']['classes']['gold']['mean'] == pytest.approx(0.1)
    assert data['on']['all']['small_p50'] == 0.1 and data['off']['all']['small_p50'] == 0.9


def test_a_link_that_is_not_full_is_not_judged(line):
    line.load = 0.3
    code, said = line.run()
    assert code == 1
    assert '\nNot judged: the link was at 80% of its rate or more for 0% of the time, and 10% are needed' in said
    assert 'better' not in said.partition('result')[2].partition('class')[0]


def test_a_rate_that_is_found(gateway):
    line = Line(gateway, AUTO)
    texts = set()
    line.at_sleep = lambda: texts.add(line.own.read_text())
    assert line.run()[0] == 0
    assert line.own.read_text() == line.before
    assert any('msfrs_link rate=auto min=1500Mbit max=1500Mbit interface=wan0\n' in text for text in texts)


@pytest.mark.parametrize('number', alternation.ENDING)
@pytest.mark.parametrize('off', [False, True])
def test_a_signal_ends_it_with_everything_as_before(line, capsys, number, off):
    before = [signal.getsignal(number) for number in alternation.ENDING]

    def at_sleep():
        if line.off == off and len(line.seen) > 2:
            line.at_sleep = lambda: None
            os.kill(os.getpid(), number)
    line.at_sleep = at_sleep
    assert line.run()[0] == 4
    assert 'slices; scheduling is on, as before' in capsys.readouterr().err
    assert line.own.read_text() == line.before and not line.off
    assert [signal.getsignal(number) for number in alternation.ENDING] == before


def test_what_is_complete_counts_after_a_signal(line):
    """Six pairs or more; half of a pair does not count."""
    line.at_sleep = lambda: line.machine.time > 1_800_000_000 + 13.5 * 30 and os.kill(os.getpid(), signal.SIGINT)
    code, said = line.run('--minutes', '240')
    assert code == 0 and ': 6 pairs of slices' in said and '6 of 6  better' in said
    assert line.own.read_text() == line.before and not line.off


def test_a_signal_while_it_is_restored_does_not_disturb(line):
    """The second one, too, of somebody who is impatient."""
    line.at_sleep = lambda: line.off and os.kill(os.getpid(), signal.SIGINT)
    line.machine.programs[f'{line.k} parse'] = lambda words: os.kill(os.getpid(), signal.SIGINT) or ''
    assert line.run()[0] == 4
    assert line.own.read_text() == line.before and not line.off


@pytest.mark.parametrize('breaks, sentence', [
    (lambda line: line.machine.pages.update(msfrs=OSError(111, 'Connection refused')), 'Squid does not answer'),
    (lambda line: line.machine.programs.update({f'{line.k} reconfigure': lambda _: Done(1, '', 'no pid file')}),
     'was not told'),
    (lambda line: line.own.write_text(line.own.read_text().replace('600Mbit', '5Mbit')),
     'somebody has changed the rate')])
def test_an_error_while_it_is_off(line, capsys, breaks, sentence):
    """What can be restored is; what cannot is said, and ends by itself."""
    def at_sleep():
        if line.off:
            line.at_sleep = lambda: None
            breaks(line)
    line.at_sleep = at_sleep
    code, said = line.run()[0], capsys.readouterr().err
    assert code in (3, 4) and sentence in said and 'Whether scheduling is as before is not known' in said
    assert '600Mbit' not in line.own.read_text() or line.own.read_text() == line.before


def test_an_error_that_passes(line, capsys):
    def once():
        line.machine.pages['msfrs'] = line.report
        raise OSError(111, 'Connection refused')

    def at_sleep():
        if line.off:
            line.at_sleep = lambda: None
            line.machine.pages['msfrs'] = once
    line.at_sleep = at_sleep
    assert line.run()[0] == 3 and 'Squid does not answer' in capsys.readouterr().err
    assert line.own.read_text() == line.before and not line.off


def test_who_is_killed_leaves_a_change_that_ends(line):
    """With which the timer of `set --expire` restores everything."""
    class Killed(BaseException):
        pass

    def at_sleep():
        if line.off:
            raise Killed
    line.at_sleep, restore = at_sleep, alternation.Switch.restore
    alternation.Switch.restore = lambda self: None
    try:
        with pytest.raises(Killed):
            line.run()
    finally:
        alternation.Switch.restore = restore
    line.at_sleep = lambda: None
    assert line.gateway.run('set', '--expire')[0] == 0 and line.off, 'not yet'
    line.machine.time += alternation.LASTS
    assert line.gateway.run('set', '--expire')[0] == 0
    assert line.own.read_text() == line.before and not line.off


@pytest.mark.parametrize('words, code, sentence', [
    (('--minutes', '5'), 2, '--minutes 5 must be from 6 to 240'), (('--ping', '-f'), 2, None),
    (('--ping', 'a b'), 2, "--ping 'a b' must be an address or a name")])
def test_wrong_options(line, capsys, words, code, sentence):
    if sentence is None:
        with pytest.raises(SystemExit):
            line.run(*words)
        return
    assert line.run(*words)[0] == code
    assert sentence in capsys.readouterr().err and len(line.seen) == 1


@pytest.mark.parametrize('breaks, sentence', [
    (lambda line: line.machine.pages.update(msfrs=OFF), 'nothing is scheduled: msfrs is off'),
    (lambda line: line.machine.pages.update(msfrs=BUSY), 'with msfrs_window law=paper or msfrs_quantum none'),
    (lambda line: line.machine.programs.update({'ping -n': Done(1)}), 'a does not answer a ping: name another'),
    (lambda line: line.machine.programs.pop('ping -n'), 'the program is in the package iputils-ping'),
    (lambda line: line.gateway.run('set', 'rate', '5Mbit'), 'msfrsctl set has changed the rate: take that back first'),
    (lambda line: (line.own.write_text('msfrs on\n'), line.gateway.conf.write_text(
        line.gateway.conf.read_text() + LINE + '\n')), 'move that line there'),
    (lambda line: line.gateway.conf.write_text(line.gateway.conf.read_text().partition('\n')[2]),
     'does not include a file of msfrsctl')])
def test_what_cannot_be_compared(line, capsys, breaks, sentence):
    breaks(line)
    before = line.own.read_text()
    line.machine.programs[f'{line.k} reconfigure'] = lambda _: pytest.fail('nothing may be changed')
    assert line.run('--ping', 'a')[0] == 3
    assert sentence in capsys.readouterr().err and line.own.read_text() == before


def test_ctrl_c_does_not_reach_what_restores():
    """The terminal sends SIGINT to all programs of its session's foreground group."""
    done = System().run(sys.executable, '-c', 'import os; print(os.getsid(0) == os.getpid())')
    assert done.out == 'True\n'


def test_it_says_if_nothing_would_restore_after_a_kill(line):
    line.run('--minutes', '6')
    assert any('msfrsctl-expire.timer does not run' in said for said in line.machine.said)
    line.machine.said.clear()
    line.machine.files['/run/systemd/system'] = ''
    line.machine.programs['systemctl'] = ''
    line.run('--minutes', '6')
    assert not any('timer' in said for said in line.machine.said)


def test_the_order_is_random_in_each_pair():
    chosen = comparison.order(1000, 7)
    assert chosen == comparison.order(1000, 7) != comparison.order(1000, 8)
    assert all(set(pair) == {False, True} for pair in zip(chosen[::2], chosen[1::2]))
    assert 400 < sum(chosen[::2]) < 600


def test_the_sign_test():
    assert comparison.sign_test(6, 6) == pytest.approx(2 / 64) and comparison.sign_test(0, 0) == 1
    assert comparison.sign_test(8, 10) == comparison.sign_test(2, 10) > comparison.CHANCE
    assert comparison.sign_test(9, 10) < comparison.CHANCE < comparison.sign_test(5, 5)


@pytest.mark.parametrize('pairs, less, so', [
    ([(5, 1)] * 6, True, 'better'), ([(5, 1)] * 6, False, 'worse'), ([(5, 1)] * 5 + [(1, 5)], True, 'no difference'),
    ([(5, 1)] * 5 + [(None, 1)], True, 'not judged: 5 of 6 pairs have enough samples, 6 are needed'),
    ([(5, 5)] * 10, True, 'no difference'), ([(1.0, 0.99)] * 10, False, 'no difference'),
    ([(5, 1)] * 9 + [(1, 5)], True, 'better')])
def test_a_verdict(pairs, less, so):
    assert comparison.judge(pairs, less)['so'] == so


def test_counters_that_begin_again_say_nothing():
    """Squid was restarted within a slice."""
    samples = [Sample(at, 1000 * at, {'a': had}, None, None)
               for at, had in ((0, 500), (1, 700), (2, 100))]
    half = comparison.Half([Slice(True, 0, 2, samples)], [], RATE, False)
    assert half.all.bytes == 200 and half.all.mean is None and half.queue is None and half.lost is None


@pytest.mark.parametrize('fields, small, any_', [
    ({}, 1, 1), ({'bytes': 16384}, 1, 1), ({'bytes': 16385}, 0, 1), ({'took': None}, 0, 0),
    ({'method': 'CONNECT'}, 0, 0), ({'result': 'TCP_MISS_ABORTED'}, 0, 0), ({'refusal': 'max_wait'}, 0, 0)])
def test_whose_time_counts(fields, small, any_):
    usual = dict.fromkeys(Record._fields) | {'method': 'GET', 'took': 0.2, 'bytes': 900, 'result': 'TCP_MISS',
                                             'ended': 5.0, 'cls': 'a'}
    found = comparison.by_slice([Slice(True, 0, 10, [])], [Record(**usual | fields)])[0].get('a', comparison.Logged())
    assert (len(found.small), len(found.times)) == (small, any_)


def test_a_request_belongs_to_the_slice_in_which_it_began():
    slices = [Slice(False, 10, 30, []), Slice(True, 40, 60, [])]
    records = [Record(**dict.fromkeys(Record._fields) | {'ended': began + 5, 'took': 5, 'cls': cls, 'method': 'GET'})
               for began, cls in ((9, 'a'), (10, 'a'), (29, 'a'), (30, 'a'), (41, 'a'), (42, None), (60, 'a'))]
    assert [{name: row.requests for name, row in of.items()} for of in comparison.by_slice(slices, records)] == \
        [{'a': 2}, {'a': 1}]


def test_records_since(tmp_path):
    """From the rotated file as well, and from no older one."""
    for suffix, times in (('', (30, 31)), ('.0', (10, 20)), ('.1', (1, 2))):
        (tmp_path / f'log{suffix}').write_text(''.join(f'{at}.000 a\n' for at in times))
    log = Log(str(tmp_path / 'log'), '%ts.%03tu %>a')
    assert sorted(record.ended for record in since(log, 20)) == [20, 30, 31]
    assert sorted(record.ended for record in since(log, 0)) == [1, 2, 10, 20, 30, 31]


def test_that_a_test_runs_is_published_as_long_as_it_does(line):
    said = set()
    line.at_sleep = lambda: said.add(line.machine.files.get('/run/msfrsctl/faults', ''))
    line.machine.files[f'/proc/{os.getpid()}'] = ''
    assert line.run()[0] == 0
    assert any(text.startswith('test\tA test runs since ') for text in said)
    assert line.machine.files['/run/msfrsctl/faults'] == '', 'also where no watch looks again'
