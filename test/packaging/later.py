# SPDX-License-Identifier: GPL-2.0-or-later
"""What an administrator does with a gateway after `msfrsctl setup`, each as a check of a fresh machine. A check takes
the machine and the host of the user."""
import json
import pathlib
import re
import threading
import time

from machine import wait_for
from outside import ADDRESS

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER = '10.20.0.2'
LOG = '/var/log/squid/msfrs-access.log'
PAGE = 'http://127.0.0.1:3880'
#: Where files of logs, of apt and of Python remain, what the kernel shows, and what the administrator has made.
KEPT = re.compile(r'/(var/(log|cache|lib/(apt|dpkg|systemd|python)|spool/squid)|tmp|run|proc|sys|dev|etc/python3|'
                  r'usr/(local/)?(lib|share)/python3[.0-9]*)(/|$)|/etc/apt/.*/msfrs\.|/root/')


def block(page, beginning=''):
    """The first block of commands of a page of docs/user that begins with a pattern."""
    return re.search(rf'^```\n({beginning}.*?)^```', (ROOT / 'docs/user' / page).read_text(), re.M | re.S)[1]


def files(machine):
    return set(machine.sh('find / -xdev').splitlines())


def _fetched(user, path, seconds=20):
    """Bytes that a user has received of a page."""
    return int(user.run('curl', '-sS', '-m', str(seconds), '-o', '/dev/null', '-w', '%{size_download}',
                        f'http://{ADDRESS}{path}', timeout=seconds + 10))


def scheduled(machine, user):
    """A user without any configuration fetches a page, and access.log has it with the class from the answers."""
    path = f'/{100000 + time.monotonic_ns() // 10**8 % 100000}'
    _fetched(user, path)
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
    before = machine.sh(f'cat {LOG}')
    assert _fetched(user, '/54321') == 54321
    assert machine.sh(f'cat {LOG}') == before, 'a request went through Squid, although that is off'
    machine.sh('msfrsctl on')
    scheduled(machine, user)


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
            _fetched(user, '/200000')
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


def removed(machine, user):
    """Nothing is left but logs."""
    said = machine.sh('msfrsctl setup --undo', timeout=200)
    assert 'not done' not in said, said
    rules = machine.sh('iptables-save; ip6tables-save')
    assert 'MSFRS' not in rules, rules
    _apt(machine, 'purge --autoremove')
    owned = set(machine.sh('cat /var/lib/dpkg/info/*.list').splitlines())
    left = [path for path in sorted(files(machine) - machine.before - owned) if not KEPT.match(path)]
    assert left == [], '\n'.join(left)
    assert machine.run('pgrep', '-l', 'squid|msfrs', check=False).stdout == ''
    assert machine.sh('systemctl --failed --no-legend --plain') == ''
    assert machine.sh('cat /proc/sys/net/ipv4/ip_forward') == '0\n'


CHECKS = (
    ('status and doctor find nothing wrong, no unit has failed', status),
    ('HTTPS is scheduled', https), ('off and on', off_and_on), ('why', why),
    ('the page, and a boost from it', page_and_boost), ('prove', prove), ('a reboot', reboot),
    ('all packages installed again', reinstalled), ('undo and purge leave no file', removed))
