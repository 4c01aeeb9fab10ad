# SPDX-License-Identifier: GPL-2.0-or-later
"""What an administrator does with a gateway after `msfrsctl setup`, each as a check of a fresh machine. A check takes
the machine and the host of the user."""
import contextlib
import json
import pathlib
import re
import threading
import time

from fieldtrial.site.host import HostError
from machine import wait_for
from outside import ADDRESS

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER = '10.20.0.2'
#: What a person answers to the questions of apt and of setup; empty: the proposal.
ANSWERS = {r'\[Y/n\] ?$': '', 'Interface of the access link': '', 'Interfaces of the users': '', "Users' networks": '',
           'Rate of the downlink': '20 Mbit/s', 'Names of the classes': 'staff guests', 'Weights of': '4 1',
           'Networks of staff': f'{USER}/32', 'Set this up': ''}
LOG, OWN = '/var/log/squid/msfrs-access.log', '/etc/squid/conf.d/msfrsctl.conf'
PAGE = 'http://127.0.0.1:3880'
#: Where files of logs, of apt and of Python remain, what the kernel shows, and what the administrator has made.
KEPT = re.compile(r'/(var/(log|cache|lib/(apt|dpkg|systemd|python)|spool/squid)|tmp|run|proc|sys|dev|etc/python3|'
                  r'usr/(local/)?(lib|share)/python3[.0-9]*)(/|$)|/etc/apt/.*/msfrs\.|/root/')


def block(page, beginning=''):
    """The first block of commands of a page of docs/user that begins with a pattern."""
    return re.search(rf'^```\n({beginning}.*?)^```', (ROOT / 'docs/user' / page).read_text(), re.M | re.S)[1]


def files(machine):
    return set(machine.sh('find / -xdev').splitlines())


def fetched(user, path, seconds=20):
    """Bytes that a user has received of a page."""
    return int(user.run('curl', '-sS', '-m', str(seconds), '-o', '/dev/null', '-w', '%{size_download}',
                        f'http://{ADDRESS}{path}', timeout=seconds + 10))


def scheduled(machine, user):
    """A user without any configuration fetches a page, and access.log has it with the class from the answers."""
    path = f'/{100000 + time.monotonic_ns() // 10**8 % 100000}'
    fetched(user, path)
    _logged(machine, path)


def _logged(machine, what):
    wait_for(lambda: re.search(rf' {re.escape(USER)} .*{re.escape(what)} .* staff ', machine.sh(f'cat {LOG}')),
             lambda: machine.sh(f'cat {LOG}'))


def status(machine, user):
    said = json.loads(machine.sh('msfrsctl status --json'))
    assert [worker['scheduling'] for worker in said['workers']] == [True], said
    assert 'MSFRS_REDIRECT' in machine.sh('iptables-save')
    failed = machine.sh('systemctl --failed --no-legend --plain')
    assert failed == '', failed
    found = json.loads(machine.run('msfrsctl', 'doctor', '--json', check=False).stdout)
    assert found['error'] == 0, found


def https(machine, user):
    """A tunnel is scheduled, and logged with the name from its ClientHello."""
    user.run('curl', '-sSk', '-m', '20', '-o', '/dev/null', '--resolve', f'site.example:443:{ADDRESS}',
             'https://site.example/100000')
    _logged(machine, 'site.example')


def off_and_on(machine, user):
    machine.sh('msfrsctl off')
    assert fetched(user, '/54321') == 54321
    machine.sh('msfrsctl on')
    scheduled(machine, user)
    # Others' requests are logged as well, such as those of the live page.
    assert '/54321' not in machine.sh(f'cat {LOG}'), 'a request went through Squid, although that is off'


def why(machine, user):
    said = machine.sh(f'msfrsctl why {USER}')
    assert USER in said and 'staff' in said, said


def page_and_boost(machine, user):
    """The live page, and a boost from it, which root's service grants: docs/user/page.md."""
    wait_for(lambda: machine.run('curl', '-sf', f'{PAGE}/healthz', check=False).returncode == 0,
             lambda: machine.sh('journalctl --no-pager -u msfrs-page | tail -n 30'))
    assert '</html>' in machine.sh(f'curl -sf {PAGE}/')
    users = f'curl -s {PAGE}/users.json'
    wait_for(lambda: USER in machine.sh(users), lambda: machine.sh(users))
    machine.sh(block('page.md', r'\(umask'))
    token = machine.sh('cat /etc/msfrs/page.token').strip()
    asks = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-X', 'POST', '-H', 'X-Msfrs-Boost: yes']
    url = f'{PAGE}/boost?name={USER}'
    assert machine.run(*asks, url).stdout == '401'
    bearer = '-H', f'Authorization: Bearer {token}'
    # After its start it asks Squid for the users.
    wait_for(lambda: machine.run(*asks, *bearer, url).stdout == '202',
             lambda: machine.run('curl', '-s', '-X', 'POST', '-H', 'X-Msfrs-Boost: yes', *bearer, url).stdout)
    wait_for(lambda: USER in machine.sh('msfrsctl set'),
             lambda: machine.sh('journalctl --no-pager -u msfrsctl-expire -u msfrsctl-expire.path | tail -n 30'))
    machine.sh('msfrsctl set --undo all')
    scheduled(machine, user)


def prove(machine, user):
    """The shortest, while the user fetches one page after the other."""
    ended = threading.Event()

    def fetch():
        while not ended.is_set():
            fetched(user, '/200000')
    users = [threading.Thread(target=fetch) for _ in range(4)]
    for each in users:
        each.start()
    try:
        said = machine.run('msfrsctl', 'prove', '--minutes', '6', '--ping', ADDRESS, timeout=600).stdout
    finally:
        ended.set()
        for each in users:
            each.join()
    assert '6 pairs of slices' in said and 'Not judged' not in said, said
    scheduled(machine, user)


def reboot(machine, user):
    machine.off()
    machine.boot()
    status(machine, user)
    scheduled(machine, user)


def _apt(machine, command):
    """With all our packages."""
    machine.sh(f"DEBIAN_FRONTEND=noninteractive apt-get -y {command} $(dpkg-query -W -f '${{Package}}\n' '*msfrs*')",
               timeout=600)


def reinstalled(machine, user):
    _apt(machine, 'install --reinstall')
    scheduled(machine, user)
    status(machine, user)


def _versions(machine):
    """{package: version} of ours."""
    return dict(line.split() for line in
                machine.sh(r"dpkg-query -W -f '${Package} ${Version}\n' '*msfrs*'").splitlines())


def _set(machine):
    """What setup and set have written, and the rules of the kernel."""
    return machine.sh(f'cat {OWN} /etc/msfrs/*.conf; iptables-save | grep "^-A" | sort')


def _quota_used(machine):
    """Bytes of the user in the class with a quota."""
    said = json.loads(machine.sh('msfrsctl status --json'))['workers'][0]['classes']
    return next(row for row in said if row['name'] == 'staff')['quota_users'][0]['bytes']


@contextlib.contextmanager
def _fetching(user):
    """The user fetches page after page meanwhile. Yields the times at which it had one, s since 1970."""
    had, lost, ended = [time.time()], [], threading.Event()

    def fetch():
        while not ended.is_set():
            try:
                assert fetched(user, '/1000') == 1000
                had.append(time.time())
            except (HostError, AssertionError) as failed:
                lost.append(failed)
    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        yield had
    finally:
        ended.set()
        thread.join()
    assert lost == []


def _longest(times):
    return max(later - earlier for earlier, later in zip(times, times[1:]))


def upgraded_and_back(machine, user):
    """By apt alone, while the user fetches pages: nothing is asked, no page is lost, and what was set stays."""
    machine.sh(f'cp {OWN} /root/own; sed -i "s|^msfrs_class staff .*|& quota=1GB/day over=guests|" {OWN}; '
               f'echo msfrs_quota_file /var/spool/squid/msfrs-quota >> {OWN}; msfrsctl set boost 10.20.0.9 --for 2h')
    fetched(user, '/5000000')
    before, kept, used = _versions(machine), _set(machine), _quota_used(machine)
    machine.add_later()
    back = ' '.join(f'{name}={version}' for name, version in before.items())
    figures = []
    for command, later in ('upgrade', '+later'), (f'install --allow-downgrades {back}', ''):
        with _fetching(user) as had:
            # A question would be an error.
            machine.sh(f'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get -y {command}', input='', timeout=600)
            wait_for(lambda: _set(machine) == kept, lambda: _set(machine))
            scheduled(machine, user)
        assert _versions(machine) == {name: version + later for name, version in before.items()}
        assert machine.sh("find /etc -name '*.dpkg-*'") == ''
        assert machine.sh('tail -n 1 /etc/squid/squid.conf').endswith('later\n') == bool(later)
        assert _quota_used(machine) >= used
        status(machine, user)
        times = [float(line.split()[0]) for line in machine.sh(f'cat {LOG}').splitlines() if f' {USER} ' in line]
        figures.append(f'{_longest(had):.1f} s without a page, '
                       f'{_longest([at for at in times if at > had[0]]):.1f} s without scheduling')
    machine.sh(f'msfrsctl set --undo all; cp /root/own {OWN}; squid -k reconfigure')
    return '; back: '.join(figures)


def removed(machine, user):
    """Nothing is left but logs."""
    said = machine.sh('msfrsctl setup --undo', timeout=200)
    assert 'not done' not in said, said
    rules = machine.sh('iptables-save; ip6tables-save')
    assert 'MSFRS' not in rules, rules
    _apt(machine, 'purge --autoremove')
    # Debian 12 has packages with files below /lib, which is /usr/lib.
    owned = set(machine.sh("sed -E 's,^/(lib|s?bin)/,/usr&,' /var/lib/dpkg/info/*.list").splitlines())
    left = [path for path in sorted(files(machine) - machine.before - owned) if not KEPT.match(path)]
    assert left == [], '\n'.join(left)
    assert machine.run('pgrep', '-l', 'squid|msfrs', check=False).stdout == ''
    assert machine.sh('systemctl --failed --no-legend --plain') == ''
    assert machine.sh('cat /proc/sys/net/ipv4/ip_forward') == '0\n'


CHECKS = (
    ('status and doctor find nothing wrong, no unit has failed', status),
    ('HTTPS is scheduled', https), ('off and on', off_and_on), ('why', why),
    ('the page, and a boost from it', page_and_boost), ('prove', prove), ('a reboot', reboot),
    ('all packages installed again', reinstalled),
    ('an upgrade and back', upgraded_and_back), ('undo and purge leave no file', removed))
