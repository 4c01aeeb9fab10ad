# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl watch: when Squid is asked, drained and ended. With a Squid that hangs: test/e2e/test_box_faults.py."""
import pytest

SCRIPT = '/opt/msfrs/share/msfrs/iptables/msfrs-iptables'
IDLE, WAITS = 'LISTEN 0 128 *:3129 *:*\n', 'LISTEN 3 128 *:3129 *:*\n'


@pytest.fixture
def watched(gateway):
    gateway.machine.files.update({'/opt/msfrs/share/msfrs': '', SCRIPT: ''})
    gateway.machine.programs.update({f'{SCRIPT} drain': 'msfrs-iptables: drained\n', str(gateway.squid): '',
                                     'ss': IDLE})
    return gateway


def run(gateway, seconds):
    """What it did in this time, but its looks."""
    machine = gateway.machine
    until, sleep = machine.time + seconds, machine.sleep

    def end(step):
        sleep(step)
        if machine.time > until:
            raise KeyboardInterrupt
    machine.sleep, machine.ran = end, []
    try:
        gateway.run('watch')
    finally:
        machine.sleep = sleep
    return [words for words in machine.ran if not words.startswith(('ss ', 'getent '))]


def ending(gateway):
    return [f'{SCRIPT} drain --config /etc/msfrs/iptables.conf', f'{gateway.squid} -f {gateway.conf} -k kill']


def test_while_nobody_waits_squid_is_not_asked(watched):
    assert run(watched, 100) == []


def test_connections_at_other_ports_do_not_count(watched):
    watched.machine.programs['ss'] = WAITS.replace('3129', '3128')
    assert run(watched, 100) == []


def test_those_that_wait_for_a_moment_do_not_count(watched):
    watched.machine.programs['ss'] = lambda _words: IDLE if watched.machine.time % 6 >= 4 else WAITS
    assert run(watched, 100) == []


def test_a_squid_that_accepts_them_later_is_only_asked(watched):
    watched.machine.programs['ss'], watched.machine.hangs = WAITS, False
    assert set(run(watched, 60)) == {'ask ::1 3129'}


@pytest.mark.parametrize('listener, asked', (('*:3129', '::1'), ('[::]:3129', '::1'), ('0.0.0.0:3129', '127.0.0.1'),
                                             ('10.1.0.1:3129', '10.1.0.1')))
def test_a_squid_that_hangs_is_ended(watched, listener, asked):
    watched.machine.programs['ss'] = WAITS.replace('*:3129 ', f'{listener} ')
    assert run(watched, 17) == [f'ask {asked} 3129', *ending(watched)]
    assert 'has not answered for 15 s' in ' '.join(watched.machine.said)


def test_it_is_ended_once_in_ten_minutes_and_drained_meanwhile(watched):
    watched.machine.programs['ss'] = WAITS
    did = run(watched, 590)
    assert did.count(ending(watched)[-1]) == 1 and did.count(ending(watched)[0]) > 1
    assert run(watched, 1210).count(ending(watched)[-1]) in (2, 3)
