# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl setup: the files that it writes, what it starts, and that everything can be undone."""
import pytest

from conftest import BUSY
from fresh_machine import (EDGE, EDGE_SCRIPT, EDGE_STOP, FLAGS, FORWARDING, IPTABLES, JOURNAL, LISTENING,
                           PAGE, PAGE_CONF, PARTY, PROGRAM, RULES, SCRIPT, SEGMENT, SWITCHES, WORKER, fresh,
                           state)
from msfrsctl.squidconf import SquidConf
from msfrsctl.start import DROP_IN
from msfrsctl.system import Done


def did(gateway):
    """What was run, but looks at the machine's rules and queueing disciplines."""
    return [words for words in gateway.machine.ran if not words.startswith(('ip', 'nft ', 'tc '))]


def test_from_nothing_and_back(fresh):
    before = state(fresh)
    code, said = fresh.run(*FLAGS)
    assert code == 0, said
    conf = SquidConf(fresh.machine, fresh.conf)
    assert [line.text for line in conf.all('msfrs_link')] == ['msfrs_link rate=20Mbit interface=eth1 shared']
    assert [line.text for line in conf.all('msfrs_class')] == ['msfrs_class gold weight=4',
                                                               'msfrs_class bronze weight=1 default']
    assert [line.text for line in conf.all('msfrs_access')] == ['msfrs_access gold allow msfrs_class_gold']
    assert conf.last('acl').name == 'acl' and conf.all('http_access')[-1].text == 'http_access deny all'
    assert next(line for line in conf.all('acl') if line.words[0] == 'msfrs_users').words[2:] == ('10.20.0.0/16',
                                                                                             '2001:db8::/64')
    assert fresh.machine.files[IPTABLES].splitlines()[1:3] == ['inside = eth0', 'mode = redirect']
    assert 'ipv6 = yes' in fresh.machine.files[IPTABLES]
    assert f'{fresh.squid} -f {fresh.conf}' in fresh.machine.ran
    assert f'{SCRIPT} up --config {IPTABLES}' in fresh.machine.ran
    assert fresh.machine.questions == []
    assert fresh.run('set')[0] == 0, 'the file is included'
    assert fresh.run('setup', '--undo')[0] == 0
    assert state(fresh) == before
    assert did(fresh)[-4:] == [f'{SCRIPT} down', f'{EDGE_SCRIPT} down', EDGE_STOP,
                                      f'{fresh.squid} -f {fresh.conf} -k shutdown']
    assert fresh.run('setup', '--undo')[0] == 3, 'there is nothing left'


def test_msfrs_syn_runs_before_users_are_redirected(fresh):
    program = '/opt/msfrs/sbin/msfrs-syn'
    fresh.machine.files[program] = ''
    assert fresh.run(*FLAGS)[0] == 0
    ran = fresh.machine.ran
    [start] = [n for n, words in enumerate(ran) if words.endswith(f'--exec {program} -- {IPTABLES}')]
    assert start < ran.index(f'{SCRIPT} up --config {IPTABLES}')
    assert fresh.run('setup', '--undo')[0] == 0
    assert [words for words in ran[start + 1:] if words.endswith(f'--exec {program}')]


def test_what_bypasses_squid_is_held_to_its_share(fresh):
    """By default, by msfrs-edge as a party of Squid's link, before users are redirected to Squid."""
    assert fresh.run(*FLAGS, '--inside', 'eth0, wlan0')[0] == 0
    said = fresh.machine.files[EDGE].splitlines()
    assert {'segment /squid-msfrs_ledger.shm', 'inside 10.20.0.0/16 2001:db8::/64', 'user proxy', 'scheduler msf',
            'aqm codel target=61 interval=244', 'queue number=1 gso=off'} < set(said)
    assert fresh.machine.files[RULES].splitlines()[1:] == ['link = eth0=1 wlan0=1', 'from = eth1', 'own = no',
                                                           'ipv6 = yes']
    starts = f'start-stop-daemon --start --background --make-pidfile --pidfile /run/msfrs-edge.pid --output'
    ran = fresh.machine.ran
    began = next(number for number, words in enumerate(ran) if words.startswith(starts))
    assert ran[began].endswith(f'--exec {PROGRAM} -- {EDGE}') and ran[began + 2] == f'{EDGE_SCRIPT} up --config {RULES}'
    assert began < ran.index(f'{SCRIPT} up --config {IPTABLES}')


def test_users_interfaces_that_come_and_go(fresh):
    assert fresh.run(*FLAGS, '--inside', 'ppp+ eth0')[0] == 0
    assert 'inside = ppp+ eth0' in fresh.machine.files[IPTABLES].splitlines()
    assert 'link = ppp+=1 eth0=1' in fresh.machine.files[RULES].splitlines()


@pytest.mark.parametrize('rate, target', [('100Mbit', 60), ('20Mbit', 61), ('2Mbit', 606), ('auto', 60)])
def test_the_queue_at_the_edge_goes_by_the_rate(fresh, rate, target):
    bounds = ('--min', '1Mbit', '--max', '50Mbit') if rate == 'auto' else ()
    assert fresh.run(*FLAGS, '--rate', rate, *bounds)[0] == 0
    assert f'aqm codel target={target} interval={4 * target}\n' in fresh.machine.files[EDGE]
    assert ' interface=eth1 shared' in fresh.own.read_text()


@pytest.mark.parametrize('words, note', [
    (('--edge', 'no'), 'without msfrs-edge nothing holds what bypasses Squid'),
    (('--uplink', '2 Mbit/s'), 'msfrs-edge schedules the uplink, so nothing holds')])
def test_without_the_edge_it_is_said(fresh, words, note):
    assert any(note in said for said in fresh.data(*FLAGS, *words)['notes'])
    assert 'shared' not in fresh.own.read_text() and 'segment' not in fresh.machine.files.get(EDGE, '')


def test_an_edge_that_is_not_installed(fresh, capsys):
    before = {name: text for name, text in state(fresh).items() if name != PROGRAM}
    del fresh.machine.files[PROGRAM]
    assert fresh.run(*FLAGS)[0] == 3
    assert 'install the package msfrs-edge, or leave it out with --edge no' in capsys.readouterr().err
    assert state(fresh) == before
    assert fresh.run(*FLAGS, '--edge', 'no')[0] == 0


@pytest.mark.parametrize('breaks, sentence', [
    (lambda machine: machine.programs.update({f'{EDGE_SCRIPT} up': Done(4, '', 'no NFQUEUE')}), 'no NFQUEUE'),
    (lambda machine: machine.programs.update({'start-stop-daemon --start': Done(1, '', 'no')}), '-- /etc/msfrs/edge'),
    (lambda machine: machine.programs.update({f'{PROGRAM} --ask status': Done(1)}), 'msfrs-edge does not answer: see '),
    (lambda machine: machine.pages.update(msfrs=BUSY), f'Squid has made no shared memory {SEGMENT}'),
    (lambda machine: machine.pages.update(msfrs=BUSY + WORKER), 'Squid does not see it share the link')])
def test_an_edge_that_does_not_start_is_taken_back(fresh, capsys, breaks, sentence):
    breaks(fresh.machine)
    before = state(fresh)
    assert fresh.run(*FLAGS)[0] == 4
    said = capsys.readouterr().err
    assert sentence in said and '; --edge no leaves msfrs-edge out; taken back: ' in said
    assert state(fresh) == before
    assert not any(f'{SCRIPT} up' in words for words in fresh.machine.ran)


def test_a_running_squid_is_started_anew_for_its_memory(fresh):
    """Squid creates the memory at start-up. If it exists already, Squid only reconfigures."""
    k = f'{fresh.squid} -f {fresh.conf} -k'
    running = [True]
    fresh.conf.write_text('http_port 3128\n')
    fresh.machine.pages['msfrs'] = BUSY

    def shutdown(words):
        running.clear()
        return ''

    def start(words):
        running.append(True)
        fresh.machine.pages['msfrs'] = BUSY + PARTY
        return ''
    fresh.machine.programs.update({f'{k} check': lambda words: Done(0 if running else 1), f'{k} shutdown': shutdown,
                                   f'{k} parse': '', f'{k} reconfigure': '', f'{fresh.squid} -f {fresh.conf}': start})
    assert fresh.run(*FLAGS)[0] == 0
    ran = [words for words in fresh.machine.ran if words.startswith(str(fresh.squid)) and 'check' not in words]
    assert ran[-2:] == [f'{k} shutdown', f'{fresh.squid} -f {fresh.conf}']
    assert fresh.run(*FLAGS)[0] == 0
    assert [words for words in fresh.machine.ran if words.startswith(k)][-1] == f'{k} reconfigure'
    assert fresh.machine.ran.count(EDGE_STOP) == 0
    fresh.machine.files['/run/msfrs-edge.pid'] = '7\n'
    assert fresh.run(*FLAGS)[0] == 0
    assert fresh.machine.ran.count(EDGE_STOP) == 1, 'the one of the time before'


@pytest.mark.parametrize('connections, at_once', (
    ('ESTAB 0 0 10.20.0.1:22 10.20.0.9:5000 users:(("sshd",pid=9,fd=4))\n', True),
    ('ESTAB 0 0 10.20.0.1:3128 10.20.0.9:5000 users:(("squid",pid=7,fd=12))\n', False)))
def test_a_squid_to_which_nobody_is_connected_ends_at_once(fresh, connections, at_once):
    """Restarted, it would wait for shutdown_lifetime."""
    k = f'{fresh.squid} -f {fresh.conf} -k'
    fresh.machine.files['/run/systemd/system'] = ''
    fresh.machine.pages['msfrs'] = BUSY

    def restart(words):
        fresh.machine.pages['msfrs'] = BUSY + PARTY
        return ''
    fresh.machine.programs.update({'systemctl': '', 'systemctl restart msfrs-squid': restart, f'{k} interrupt': '',
                                   'ss -Htnp state connected': connections})
    assert fresh.run(*FLAGS)[0] == 0
    before = fresh.machine.ran[:fresh.machine.ran.index('systemctl restart msfrs-squid')]
    assert (f'{k} interrupt' in before) == at_once


def test_a_squid_conf_that_is_there_is_kept(fresh):
    fresh.conf.write_text('http_port 3128\nacl old src 10.0.0.0/8\nhttp_access deny all\n')
    before = state(fresh)
    assert fresh.run(*FLAGS)[0] == 0
    assert fresh.conf.read_text() == f'include {fresh.own}\n' + before['squid.conf']
    assert 'http_port 3128\n' not in fresh.own.read_text(), 'it has that port'
    assert fresh.run(*FLAGS)[0] == 0, 'once more'
    assert fresh.conf.read_text().count('include') == 1
    assert fresh.run('setup', '--undo')[0] == 0
    assert state(fresh) == before


@pytest.mark.parametrize('line, wait', (('', '5 seconds'), ('shutdown_lifetime 1 minute\n', '1 minute')))
def test_a_restart_cuts_tunnels_soon_unless_squid_conf_says_when(fresh, line, wait):
    fresh.conf.write_text(f'http_port 3128\n{line}')
    assert fresh.run(*FLAGS)[0] == 0
    conf = SquidConf(fresh.machine, fresh.conf)
    assert [' '.join(line.words) for line in conf.all('shutdown_lifetime')] == [wait]


def test_bytes_of_others_are_kept(fresh):
    old = b'# caf\xe9\r\nhttp_port 3128\n'
    fresh.conf.write_bytes(old)
    assert fresh.run(*FLAGS)[0] == 0
    assert fresh.conf.read_bytes() == f'include {fresh.own}\n'.encode() + old
    assert fresh.run('setup', '--undo')[0] == 0
    assert fresh.conf.read_bytes() == old


def test_debians_directory_needs_no_change_of_squid_conf(fresh):
    (fresh.root / 'conf.d').mkdir()
    fresh.conf.write_text(f'include {fresh.root}/conf.d/*.conf\nhttp_access deny all\n')
    assert fresh.run(*FLAGS)[0] == 0
    assert fresh.conf.read_text().startswith(f'include {fresh.root}/conf.d/*.conf\nhttp')
    assert 'msfrs on' in (fresh.root / 'conf.d/msfrsctl.conf').read_text()


@pytest.mark.parametrize('path', [IPTABLES, 'own'])
def test_files_of_others_are_not_replaced_unasked(fresh, capsys, path):
    path = str(fresh.own) if path == 'own' else path
    fresh.machine.write(path, '# mine\n')
    before = state(fresh)
    assert fresh.run(*FLAGS)[0] == 3
    assert f'{path} is there and not of msfrsctl' in capsys.readouterr().err
    assert state(fresh) == before and not any('openssl' in ran for ran in fresh.machine.ran)
    assert fresh.run(*FLAGS, '--replace')[0] == 0
    assert fresh.machine.read(path) != '# mine\n'
    assert fresh.run('setup', '--undo')[0] == 0
    assert state(fresh) == before


@pytest.mark.parametrize('off', [SWITCHES[:1], SWITCHES[1:], SWITCHES])
def test_a_machine_that_does_not_forward_does_from_then_on(fresh, off):
    fresh.machine.files.update({f'/proc/sys/{name}': '0\n' for name in off})
    before = state(fresh)
    assert fresh.run(*FLAGS)[0] == 0
    assert fresh.machine.files[FORWARDING].splitlines()[1:] == [f'{name} = 1' for name in SWITCHES]
    ran = fresh.machine.ran
    assert ran.index(f'sysctl -q -p {FORWARDING}') < ran.index(f'{SCRIPT} up --config {IPTABLES}')
    assert fresh.run('setup', '--undo')[0] == 0
    assert state(fresh) == before
    assert did(fresh)[-1] == f'sysctl -q -w {" ".join(f"{name}=0" for name in off)}'


def test_a_machine_that_forwards_is_left_alone(fresh):
    assert fresh.run(*FLAGS)[0] == 0
    assert FORWARDING not in fresh.machine.files and not any(ran.startswith('sysctl') for ran in fresh.machine.ran)


def test_the_end_says_what_to_do_next(fresh):
    said = fresh.run(*FLAGS)[1].partition('\nSet up in ')[2].splitlines()
    assert len(said) == 8 and said[1].startswith('  link     20 Mbit/s at eth1; msfrs-edge holds what bypasses Squid')
    assert said[3] == '  weights  gold 4 (10.20.1.0/24), bronze 1 (everybody else)'
    assert [line.split()[0] for line in said[4:]] == ['look', 'ask', 'undo', 'off']
    assert 'msfrsctl setup --undo' in said[6]


def test_the_page_of_an_administrator_is_kept(fresh):
    fresh.machine.files.update({'/run/systemd/system': '', PAGE_CONF: 'listen 10.20.0.1:3880\n'})
    fresh.machine.programs['systemctl'] = ''
    assert '  open     http://10.20.0.1:3880/\n' in fresh.run(*FLAGS)[1]
    assert fresh.machine.files[PAGE_CONF] == 'listen 10.20.0.1:3880\n'


def starts(fresh):
    """A Squid that listens once it has been started."""
    ports = []
    fresh.machine.programs.update({f'{fresh.squid} -f {fresh.conf}': lambda words: ports.append(LISTENING) or '',
                                   'ss -Hltn': lambda words: ''.join(ports),
                                   f'{fresh.squid} -f {fresh.conf} -k check': Done(1)})


def test_a_page_comes_through_squid_before_users_do(fresh):
    """Whatever the server's status is. Before that, no file exists with which a start of Squid would redirect users."""
    starts(fresh)
    there = []
    fresh.machine.proxied[PAGE] = lambda: there.append(IPTABLES in fresh.machine.files) or (404, {}, 'of the server')
    assert fresh.run(*FLAGS)[0] == 0
    assert there == [False, True]
    ran = [words for words in fresh.machine.ran if words.startswith(('GET', f'{SCRIPT} up'))]
    assert ran == [f'GET {PAGE}', f'{SCRIPT} up --config {IPTABLES}', f'GET {PAGE}']


@pytest.mark.parametrize('listening, answer, sentence', [
    ('', (200, {}, ''), 'Squid does not listen on port 3128 and port 3129 and port 3130 after 30 s'),
    (LISTENING.replace('3130', '3139'), (200, {}, ''), 'Squid does not listen on port 3130 after'),
    (Done(127, '', 'ss: not found'), (200, {}, ''), 'which ports are open cannot be seen: ss: not found'),
    (LISTENING, TimeoutError('no whole answer within 20 s'), 'does not come through Squid at 127.0.0.1 port 3128: no'),
    (LISTENING, (503, {'x-squid-error': 'ERR_DNS_FAIL 0'}, ''), 'ERR_DNS_FAIL (the name cannot be resolved'),
    (LISTENING, (403, {'x-squid-error': 'ERR_ACCESS_DENIED 0'}, ''), 'an http_access line of squid.conf denies it')])
def test_nobody_is_sent_to_a_squid_that_brings_nothing(fresh, capsys, listening, answer, sentence):
    before = state(fresh)
    fresh.machine.programs['ss -Hltn'] = listening
    fresh.machine.proxied[PAGE] = answer
    assert fresh.run(*FLAGS)[0] == 4
    said = capsys.readouterr().err
    assert sentence in said and f'{IPTABLES}' not in said, said
    assert not any(f'{SCRIPT} up' in words for words in fresh.machine.ran)
    assert state(fresh) == before and fresh.machine.ran[-1] == f'{fresh.squid} -f {fresh.conf} -k shutdown'


def test_users_are_let_go_if_squid_brings_nothing_afterwards(fresh):
    before = state(fresh)
    fresh.machine.proxied[PAGE] = lambda: ConnectionResetError(104, 'Connection reset by peer') \
        if f'{SCRIPT} up --config {IPTABLES}' in fresh.machine.ran else (200, {}, '')
    assert fresh.run(*FLAGS)[0] == 4
    assert state(fresh) == before
    assert did(fresh)[-4:] == [f'{SCRIPT} down', f'{EDGE_SCRIPT} down', EDGE_STOP,
                                      f'{fresh.squid} -f {fresh.conf} -k shutdown']


def test_the_page_may_be_another_or_none(fresh):
    fresh.machine.proxied = {'http://intra.test:81/x': (200, {}, '')}
    assert fresh.run(*FLAGS, '--probe', 'http://intra.test:81/x')[0] == 0
    assert fresh.run(*FLAGS, '--probe', 'no')[0] == 0
    assert fresh.machine.ran.count('GET http://intra.test:81/x') == 2


def test_what_squid_refuses_is_taken_back(fresh, capsys):
    before = state(fresh)
    fresh.machine.programs[f'{fresh.squid} -f {fresh.conf} -k parse'] = Done(1, '', 'FATAL: bad configuration: no')
    assert fresh.run(*FLAGS)[0] == 4
    assert 'Squid refuses the configuration: bad configuration: no; taken back: ' in capsys.readouterr().err
    assert state(fresh) == before


def test_what_squid_ignores_is_taken_back(fresh, capsys):
    """Squid exits with 0: a virus scanner that scans nothing would go unnoticed."""
    fresh.conf.write_text('http_port 3128\nicap_enable on\n')
    before = state(fresh)
    fresh.machine.programs[f'{fresh.squid} -f {fresh.conf} -k parse'] = Done(
        0, '', "2026| Processing: http_port 3128\n2026| Processing: icap_enable on\n"
        "2026| ERROR: 'icap_enable' requires --enable-icap-client\n")
    assert fresh.run(*FLAGS)[0] == 4
    assert (f"Squid does not do all that its configuration says: {fresh.conf}:3: icap_enable on: 'icap_enable' requires "
            '--enable-icap-client (install a Squid with that feature' in capsys.readouterr().err)
    assert state(fresh) == before


def test_what_cannot_be_started_is_taken_back(fresh):
    before = state(fresh)
    fresh.machine.programs[f'{SCRIPT} up'] = Done(3, '', 'no interface')
    assert fresh.run(*FLAGS)[0] == 4
    assert state(fresh) == before
    assert fresh.machine.ran[-1] == f'{fresh.squid} -f {fresh.conf} -k shutdown'


def test_a_second_setup_that_fails_leaves_the_first(fresh):
    assert fresh.run(*FLAGS)[0] == 0
    before = state(fresh)
    fresh.machine.programs[f'{fresh.squid} -f {fresh.conf} -k parse'] = Done(1, '', 'FATAL: no')
    assert fresh.run(*FLAGS, '--rate', '10Mbit')[0] == 4
    assert state(fresh) == before
    assert not any('shutdown' in ran or 'down' in ran.split() for ran in fresh.machine.ran)


def test_changes_of_set_do_not_keep_the_file(fresh):
    before = state(fresh)
    fresh.run(*FLAGS)
    assert fresh.run('set', 'boost', '10.20.2.1')[0] == fresh.run('set', 'rate', '5Mbit')[0] == 0
    assert fresh.run('setup', '--undo')[0] == 0
    assert state(fresh) == before


def test_a_running_squid_is_told_before_and_after(fresh):
    k = f'{fresh.squid} -f {fresh.conf} -k'
    fresh.conf.write_text('http_port 3128\n')
    fresh.machine.programs[f'{k} check'] = ''
    assert fresh.run(*FLAGS)[0] == 0
    fresh.machine.programs[f'{k} reconfigure'] = lambda words: fresh.conf.read_text()
    fresh.run('setup', '--undo')
    assert did(fresh)[-1] == f'{k} reconfigure'


def test_no_class_can_have_the_name_of_an_acl_of_ours(fresh):
    assert fresh.run(*FLAGS, '--class', 'users=2=10.20.2.0/24')[0] == 0
    names = [line.words[0] for line in SquidConf(fresh.machine, fresh.conf).all('acl')]
    assert len(names) == len(set(names))


class Systemd:
    """systemctl with the states of units; those in `enabled` and `active` at first, the others neither."""

    def __init__(self, machine, enabled=(), active=()):
        self.enabled, self.active = set(enabled), set(active)
        machine.files['/run/systemd/system'] = ''
        machine.programs['systemctl'] = self

    def __call__(self, words):
        verb, *units = words.split()[1:]
        units = [unit for unit in units if not unit.startswith('--')]
        if verb in ('is-enabled', 'is-active'):
            kept = self.enabled if verb == 'is-enabled' else self.active
            said = verb.removeprefix('is-') if units[0] in kept else f'not {verb.removeprefix("is-")}'
            return Done(0 if units[0] in kept else 1, said + '\n')
        kept = self.enabled if 'able' in verb else self.active
        if verb in ('enable', 'start', 'restart', 'reload-or-restart'):
            kept.update(units)
        elif verb in ('disable', 'stop'):
            kept.difference_update(units)
        return Done(0)


UNITS = {'msfrs-squid', 'msfrsctl-expire.timer', 'msfrsctl-watch', 'msfrs-edge', 'msfrs-edge-iptables', 'msfrs-page',
         'msfrs-iptables'}


@pytest.mark.parametrize('enabled, active', ((set(), set()), (UNITS, {'msfrs-squid', 'msfrsctl-watch'}),
                                             ({'msfrs-squid'}, UNITS | {'msfrs-syn'})))
def test_with_systemd_units_are_started_and_undo_leaves_them_as_they_were(fresh, enabled, active):
    systemd = Systemd(fresh.machine, enabled, active)
    before = state(fresh)
    assert fresh.run(*FLAGS)[0] == 0
    assert systemd.active == UNITS | {'msfrs-syn'} and systemd.enabled == UNITS
    assert fresh.machine.files[DROP_IN].endswith('[Service]\nSupplementaryGroups=proxy\n')
    ran = fresh.machine.ran
    assert ran.index('systemctl daemon-reload') < ran.index('systemctl restart msfrs-edge msfrs-edge-iptables') < \
        ran.index('systemctl reload-or-restart msfrs-iptables')
    assert fresh.machine.files[PAGE_CONF].splitlines()[1:3] == ['listen 127.0.0.1:3880', 'squid 127.0.0.1:3128']
    assert fresh.run(*FLAGS, '--rate', '10Mbit')[0] == 0, 'a second one keeps what was before the first'
    ran.clear()
    code, said = fresh.run('setup', '--undo')
    assert code == 0 and said.endswith('All is as before the first setup: files, units, rules, sysctls and queueing '
                                       'disciplines.\n')
    assert (systemd.enabled, systemd.active) == (enabled, active) and state(fresh) == before
    assert 'systemctl daemon-reload' in ran


def test_undo_names_what_is_not_as_before(fresh):
    systemd = Systemd(fresh.machine)
    fresh.machine.programs['nft'] = 'table inet filter {\n}\n'
    assert fresh.run(*FLAGS)[0] == 0
    fresh.machine.programs['nft'] = 'table inet filter {\n\tchain PREROUTING {\n\t}\n}\n'
    fresh.machine.files['/proc/sys/net/ipv4/ip_forward'] = '0\n'
    code, said = fresh.run('setup', '--undo')
    assert 'not as before: rules of nft: more: chain PREROUTING {' in said
    assert 'not as before: sysctl net.ipv4.ip_forward: was 1, is 0' in said and 'All is as before' not in said


@pytest.mark.parametrize('at', range(1, 60))
def test_ctrl_c_at_any_command(fresh, capsys, at):
    """Nothing stays of an interrupted setup, systemd knows that, and the next one works."""
    systemd, before = Systemd(fresh.machine, {'msfrs-page'}), state(fresh)
    run, count = fresh.machine.run, 0

    def interrupted(*argv, **how):
        nonlocal count
        count += 1
        done = run(*argv, **how)
        if count == at:
            raise KeyboardInterrupt
        return done
    fresh.machine.run = interrupted
    code = fresh.run(*FLAGS)[0]
    if code == 0:       # it has fewer commands
        return
    said = capsys.readouterr().err
    assert 'interrupted' in said and ('nothing was changed' in said or 'taken back: ' in said)
    assert state(fresh) == before and systemd.enabled == {'msfrs-page'} and not systemd.active
    ran = fresh.machine.ran
    if f'{DROP_IN} removed' in said:
        assert 'systemctl daemon-reload' in ran, 'else systemctl cat fails for the unit of the drop-in'
    assert fresh.run(*FLAGS)[0] == 0


def test_after_a_failure_squid_is_started_anew(fresh):
    Systemd(fresh.machine)
    fresh.machine.pages['msfrs'] = BUSY
    assert fresh.run(*FLAGS)[0] == 4
    assert 'systemctl restart msfrs-squid' in fresh.machine.ran, 'it makes the memory when it starts'
    assert f'{SCRIPT} up --config {IPTABLES}' not in fresh.machine.ran


def test_undo_waits_until_squid_has_ended(fresh, monkeypatch):
    """Under the default shutdown_lifetime it takes 31 seconds."""
    fresh.machine.files['/run/systemd/system'] = ''
    fresh.machine.programs['systemctl'] = ''
    assert fresh.run(*FLAGS)[0] == 0
    run = fresh.machine.run

    def patient(*argv, timeout=30, **how):
        done = run(*argv, timeout=timeout, **how)
        return Done(124) if argv[:2] == ('systemctl', 'restart') and timeout <= 31 else done
    monkeypatch.setattr(fresh.machine, 'run', patient)
    assert fresh.data('setup', '--undo')['notes'] == []


@pytest.mark.parametrize('conf_d', [False, True])
def test_undo_leaves_nothing_that_squid_reads(fresh, conf_d):
    """A file changed by hand is kept beside the original, under a name that no include matches."""
    if conf_d:
        (fresh.root / 'conf.d').mkdir()
        fresh.conf.write_text(f'include {fresh.root}/conf.d/*.conf\n')
    own = fresh.root / ('conf.d' if conf_d else '') / 'msfrsctl.conf'
    assert fresh.run(*FLAGS)[0] == 0
    changed = own.read_text().replace('gold weight=4', 'gold weight=6') + 'cache_mem 1 GB\n'
    own.write_text(changed)
    before = own.with_name(own.name + '.saved')
    before.write_text('of an earlier time\n')
    data = fresh.data('setup', '--undo')
    assert not own.exists() and before.read_text() == 'of an earlier time\n'
    assert own.with_name(own.name + '.saved1').read_text() == changed
    assert f'{own}.saved1 has {own} as you had changed it' in data['done'] and JOURNAL not in fresh.machine.files


@pytest.mark.parametrize('change', [
    lambda text: text + 'cache_mem 1 GB\n', lambda text: '# mine\n' + text,
    lambda text: text.replace('http_port 3128\n', 'http_port 8080\n')])
def test_undo_leaves_a_squid_conf_as_it_is_now(fresh, change):
    """Without the line that includes a file that no longer exists, with which Squid would not start."""
    fresh.conf.write_text('http_port 3128\nacl old src 10.0.0.0/8\n')
    wanted = change(fresh.conf.read_text())
    assert fresh.run(*FLAGS)[0] == 0
    fresh.conf.write_text(change(fresh.conf.read_text()))
    assert fresh.run('setup', '--undo')[0] == 0
    assert fresh.conf.read_text() == wanted and not fresh.own.exists()
    assert not list(fresh.root.glob('*.saved*'))


def test_what_was_changed_since_is_kept_beside(fresh):
    fresh.machine.files[IPTABLES] = '# the old one\n'
    assert fresh.run(*FLAGS, '--replace')[0] == 0
    fresh.machine.files[IPTABLES] += 'exempt-client = 10.20.0.9\n'
    assert fresh.run('setup', '--undo')[0] == 0
    assert fresh.machine.files[IPTABLES] == '# the old one\n'
    assert 'exempt-client = 10.20.0.9' in fresh.machine.files[f'{IPTABLES}.saved']
    assert fresh.run(*FLAGS, '--replace')[0] == 0
    fresh.machine.files[IPTABLES] += 'exempt-client = 10.20.0.9\n'
    assert fresh.run('setup', '--undo', '--replace')[0] == 0, 'as before, and no copy'
    assert f'{IPTABLES}.saved1' not in fresh.machine.files


def test_print_changes_nothing(fresh):
    before = state(fresh)
    code, said = fresh.run(*FLAGS, '--print')
    assert code == 0 and '# ---- /etc/msfrs/iptables.conf' in said and state(fresh) == before


def test_needs_root_and_squid(fresh, capsys):
    fresh.machine.user = 1000
    assert fresh.run(*FLAGS)[0] == 3 and 'needs root' in capsys.readouterr().err
    fresh.machine.user = 0
    fresh.squid.unlink()
    assert fresh.run(*FLAGS)[0] == 3 and 'no program' in capsys.readouterr().err


def test_msfrs_lines_of_others(fresh, capsys):
    fresh.conf.write_text('msfrs on\n')
    assert fresh.run(*FLAGS)[0] == 3
    assert 'squid.conf:1 has msfrs: remove the msfrs lines' in capsys.readouterr().err
