# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian packages on machines of their own: installed, in place of Debian's Squid and back, set up, removed,
purged, upgraded under load. `./check --only packages` builds them, and has the engine and the image."""
import json
import os
import re

import pytest
from machine import boot, wait_for

SUITE = os.environ.get('MSFRS_PACKAGES')
IMAGE = f'msfrs-packages:{SUITE}'
EXAMPLES = '/usr/share/msfrs/examples'
#: A server that is not on the loopback's own addresses, which squid.conf keeps users from.
SERVER = '192.0.2.1:8000'
#: The default of 30 seconds would be most of what these tests take.
QUICK = '/etc/squid/conf.d/quick.conf'
SCHEDULED = 'msfrs on\nmsfrs_link rate=20Mbit interface=lo\nmsfrs_class all weight=1 default\n'
#: Those that wait for a configuration, and the packages that have them.
WAITING = ('msfrs-edge', 'msfrs-edge-iptables', 'msfrs-iptables', 'msfrs-page', 'msfrs-share')
PACKAGES = ('squid-msfrs', 'msfrs-edge', 'msfrs-page', 'msfrs-share', 'msfrs-tools')

pytestmark = pytest.mark.skipif(not SUITE, reason='needs packages and an engine: ./check --only packages')


def apt(machine, *words, check=True):
    """apt-get as a script calls it: nobody answers questions; of a changed configuration the administrator's stays."""
    return machine.run('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-y', '--no-install-recommends', '-o',
                       'Dpkg::Options::=--force-confold', *words, check=check, timeout=300)


def apt_without_answer(machine, *words):
    """The same, but a question is an error."""
    return machine.run('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-y', '--no-install-recommends', *words,
                       timeout=300)


def fetch(machine, path='/'):
    """What a user gets through Squid."""
    return machine.run('curl', '-sS', '--fail', '--noproxy', '', '-x', 'http://127.0.0.1:3128', '-w', '%{http_code}',
                       '-o', '/dev/null', f'http://{SERVER}{path}', check=False).stdout


def works(machine):
    """Squid runs, is started at boot, and brings a page."""
    assert machine.show('squid')['ActiveState'] == 'active', machine.sh('journalctl --no-pager -u squid | tail -n 30')
    assert machine.run('systemctl', 'is-enabled', 'squid').stdout == 'enabled\n'
    wait_for(lambda: fetch(machine) == '200', lambda: machine.sh('tail -n 30 /var/log/squid/*'))


def installed(machine, name):
    """Whether a package is, and not only what it left behind."""
    done = machine.run('dpkg-query', '-W', '-f', '${db:Status-Status}', name, check=False)
    return done.stdout == 'installed'


@pytest.fixture(name='machine')
def _machine():
    with boot(IMAGE) as machine:
        machine.sh('ip addr add 192.0.2.1/32 dev lo; mkdir -p /srv/web; head -c 200000 /dev/zero > /srv/web/large')
        machine.run('systemd-run', '--unit', 'web', 'python3', '-m', 'http.server', '--bind', '192.0.2.1',
                    '--directory', '/srv/web', '8000')
        machine.write(QUICK, 'shutdown_lifetime 1 second\n')
        yield machine


def test_a_fresh_installation_schedules(machine):
    apt_without_answer(machine, 'install', 'squid-msfrs', 'msfrs-edge', 'msfrs-tools')
    works(machine)
    machine.write('/etc/squid/conf.d/msfrs.conf', SCHEDULED)
    machine.sh('squid -k parse; systemctl restart squid')
    works(machine)
    status = json.loads(machine.sh('msfrsctl status --json'))
    assert [worker['scheduling'] for worker in status['workers']] == [True], status
    # The page for who waited too long is where Squid looks for it.
    assert 'ERR_MSFRS_QUEUE' not in machine.sh('cat /var/log/squid/cache.log')


def test_units_start_when_there_is_something_to_do(machine):
    apt(machine, 'install', *PACKAGES)
    for unit in WAITING:
        found = machine.show(unit)
        assert (found['ActiveState'], found['Result']) == ('inactive', 'success'), (unit, found)
        assert machine.run('systemctl', 'is-enabled', unit).stdout == 'enabled\n'
    machine.sh(f'mkdir -p /etc/msfrs; cp {EXAMPLES}/uplink.conf /etc/msfrs/edge.conf; systemctl start msfrs-edge')
    assert machine.show('msfrs-edge')['ActiveState'] == 'active'
    assert 'msf' in machine.sh('msfrs-edge --plugins')
    machine.sh('ip link add eth0 type veth peer name eth1; ip link set eth0 up')
    machine.write('/etc/msfrs/iptables.conf', 'inside = eth0\nset-sysctl = yes\n')
    machine.sh('systemctl start msfrs-iptables')
    assert 'MSFRS_REDIRECT' in machine.sh('iptables-save')
    # Users are not sent to a Squid that is not there.
    machine.sh('systemctl stop squid')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    machine.sh('systemctl start msfrs-iptables')
    apt(machine, 'remove', 'msfrs-tools')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    # The engine has no namespace of users to give.
    machine.write('/etc/systemd/system/msfrs-page.service.d/here.conf', '[Service]\nPrivateUsers=no\n')
    machine.sh(f'cp {EXAMPLES}/page.conf /etc/msfrs; systemctl daemon-reload; systemctl start msfrs-page')
    wait_for(lambda: machine.run('curl', '-sf', '--noproxy', '*', 'http://127.0.0.1:3880/', check=False).stdout,
             lambda: machine.sh('journalctl --no-pager -u msfrs-page | tail -n 20'))
    machine.sh('test -e /var/lib/private/msfrs-page')
    machine.sh('rm -r /etc/systemd/system/msfrs-page.service.d')
    apt(machine, 'purge', *PACKAGES[1:])
    assert machine.show('msfrs-edge')['ActiveState'] == 'inactive'
    assert machine.sh('find /etc/systemd /etc/apparmor.d /lib/systemd /var/lib/msfrs* /var/lib/private -name "*msfrs*" '
                      '! -name msfrs.conf 2>/dev/null || true') == ''


@pytest.mark.parametrize('theirs', ('squid', 'squid-openssl'))
def test_takes_the_place_of_debians_squid_and_gives_it_back(machine, theirs):
    apt(machine, 'install', theirs)
    works(machine)
    machine.sh('echo "visible_hostname of-the-administrator" >> /etc/squid/squid.conf')
    kept = machine.sh('md5sum /etc/squid/squid.conf')
    apt(machine, 'install', 'squid-msfrs')
    assert not installed(machine, theirs)
    works(machine)
    assert machine.sh('md5sum /etc/squid/squid.conf') == kept
    assert 'Version 6.13' in machine.sh('squid -v')

    apt(machine, 'install', theirs)
    assert not installed(machine, 'squid-msfrs')
    works(machine)
    assert machine.sh('md5sum /etc/squid/squid.conf') == kept
    apt(machine, 'purge', 'squid-msfrs')
    machine.sh('systemctl restart squid')
    works(machine)
    assert machine.sh('md5sum /etc/squid/squid.conf') == kept


@pytest.mark.skipif(SUITE == 'bookworm', reason='Debian 12 has another version of squid.conf')
def test_asks_nothing_about_a_changed_squid_conf(machine):
    apt(machine, 'install', 'squid')
    machine.sh('echo "visible_hostname of-the-administrator" >> /etc/squid/squid.conf')
    apt_without_answer(machine, 'install', 'squid-msfrs')
    works(machine)
    apt_without_answer(machine, 'install', 'squid')
    works(machine)


def test_purging_debians_squid_afterwards_leaves_what_is_used(machine):
    apt(machine, 'install', 'squid')
    machine.sh('echo "visible_hostname of-the-administrator" >> /etc/squid/squid.conf')
    apt(machine, 'install', 'squid-msfrs')
    apt(machine, 'purge', 'squid')
    assert 'of-the-administrator' in machine.sh('cat /etc/squid/squid.conf')
    if SUITE != 'bookworm':  # as README.Debian says
        machine.sh('systemctl enable squid')
    machine.sh('systemctl restart squid')
    works(machine)


def test_remove_leaves_the_configuration_and_purge_nothing_but_logs(machine):
    apt(machine, 'install', 'squid-msfrs')
    works(machine)
    apt(machine, 'remove', 'squid-msfrs')
    assert machine.show('squid')['ActiveState'] == 'inactive'
    assert machine.run('pgrep', '-x', 'squid', check=False).stdout == ''
    machine.sh('test -e /etc/squid/squid.conf -a ! -e /usr/sbin/squid')
    apt(machine, 'install', 'squid-msfrs')
    works(machine)
    apt(machine, 'purge', 'squid-msfrs')
    machine.sh(f'rm {QUICK}; rmdir -p --ignore-fail-on-non-empty /etc/squid/conf.d')
    assert machine.sh('find /etc -name "*squid*" ! -path "*/alternatives/*" ! -path "/etc/rc?.d/*"') == ''
    machine.sh('test -e /var/log/squid/access.log')


def test_an_upgrade_under_load_loses_no_user(machine):
    apt(machine, 'install', 'squid-msfrs')
    machine.write('/etc/squid/conf.d/msfrs.conf', SCHEDULED)
    machine.sh('systemctl restart squid')
    works(machine)
    before = machine.show('squid')['MainPID']
    # Four users who fetch page after page. Who finds nobody there asks again; a page that breaks off is one lost.
    machine.write('/usr/local/bin/user', 'while ! test -e /tmp/enough; do\n'
                  f'    curl -s -x http://127.0.0.1:3128 -o /dev/null -w "%{{exitcode}} %{{size_download}}\\n" '
                  f'http://{SERVER}/large || true\ndone > /tmp/user.$1\n')
    for number in range(4):
        machine.run('systemd-run', '--unit', f'user-{number}', 'sh', '/usr/local/bin/user', str(number))
    wait_for(lambda: int(machine.sh('cat /tmp/user.* | wc -l')) > 9, machine.said)
    apt(machine, 'install', '--reinstall', 'squid-msfrs')
    assert machine.show('squid')['MainPID'] != before
    works(machine)
    pages = machine.sh('cat /tmp/user.*').splitlines()
    wait_for(lambda: len(machine.sh('cat /tmp/user.*').splitlines()) > len(pages) + 20, machine.said)
    pages = machine.sh('touch /tmp/enough; cat /tmp/user.*').splitlines()
    found = {line for line in pages}
    # 7: nobody listens; 52 and 56: the connection ended before an answer, or within it, as shutdown_lifetime has it.
    assert found <= {'0 200000', '7 0', '52 0', '56 0'} | {line for line in found if line.startswith('18 ')}, found
    assert machine.sh('systemctl show -P NRestarts squid') == '0\n'


#: Makes of the machine a gateway: a user behind lan, 10.20.0.2, and the world behind wan, 203.0.113.1.
GATEWAY = '''
for end in "lan user 10.20.0.1 10.20.0.2" "wan world 198.51.100.1 198.51.100.2"; do
    set -- $end
    ip netns add $2
    ip link add $1 type veth peer name eth0 netns $2
    ip addr add $3/24 dev $1
    ip -n $2 addr add $4/24 dev eth0
    ip link set $1 up
    ip -n $2 link set eth0 up
done
ip route add default via 198.51.100.2
# As Debian's installer has it. There is no resolver to ask.
echo "127.0.1.1 gateway.example $(hostname)" >> /etc/hosts
ip -n user route add default via 10.20.0.1
ip -n world link set lo up
ip -n world addr add 203.0.113.1/32 dev lo
systemd-run --unit world ip netns exec world python3 -m http.server --bind 203.0.113.1 --directory /srv/web 80
'''
LOG, OWN = '/var/log/squid/msfrs-access.log', '/etc/squid/conf.d/msfrsctl.conf'


def browse(machine):
    """What a user gets who knows of no proxy."""
    return machine.run('ip', 'netns', 'exec', 'user', 'curl', '-sS', '-m', '20', '-w', '%{http_code}', '-o',
                       '/dev/null', 'http://203.0.113.1/large', check=False).stdout


def test_setup_makes_a_gateway_of_it_and_takes_that_back(machine):
    machine.sh(GATEWAY)
    apt(machine, 'install', 'squid-msfrs', 'msfrs-tools')
    works(machine)
    files = 'cd /etc/squid; find . -type f -exec md5sum {} + | sort'
    before = machine.sh(files)
    machine.sh('msfrsctl setup --yes --rate 20Mbit --class staff=4=10.20.0.2/32 --class guests=1')
    wait_for(lambda: browse(machine) == '200', lambda: machine.sh('tail -n 30 /var/log/squid/cache.log'))
    wait_for(lambda: re.search(r' 10\.20\.0\.2 .* http://203\.0\.113\.1/large .* staff ', machine.sh(f'cat {LOG}')),
             lambda: machine.sh(f'cat {LOG}'))
    # A change that has expired is taken back by the unit, with the rights that it has.
    machine.sh('msfrsctl set rate 18Mbit --for 1min; systemctl is-active msfrsctl-expire.timer')
    machine.sh(f"""grep -q rate=18Mbit {OWN}; sed -Ei 's/"until": [0-9.]+/"until": 1/' {OWN}; """
               'systemctl start msfrsctl-expire')
    assert 'rate=20Mbit' in machine.sh(f'cat {OWN}')
    assert json.loads(machine.sh('msfrsctl doctor --only interception --json'))['error'] == 0

    machine.sh('msfrsctl setup --undo')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    assert machine.sh(files) == before
    apt(machine, 'install', 'squid')
    works(machine)
    apt(machine, 'purge', 'squid-msfrs', 'msfrs-tools')
    machine.sh('test ! -e /var/lib/msfrs')


def test_plugins_build_against_the_header(machine):
    apt(machine, 'install', 'msfrs-dev', 'msfrs-edge', 'gcc', 'libc6-dev', 'make', 'pkgconf')
    assert ' rr ' not in machine.sh('msfrs-edge --plugins')
    machine.sh('cp -r /usr/share/doc/msfrs-dev/examples/plugin /root; cd /root/plugin; make install')
    machine.write('/etc/msfrs/rr.conf', 'link rate=1Mbit\nqueue number=0\nscheduler rr burst=2\n')
    assert machine.sh('msfrs-edge --check /etc/msfrs/rr.conf 2>&1') == ''


def test_squid_is_hardened(machine):
    """As docs/security.md says. test/docs/test_units.py has the units of the tree."""
    apt(machine, 'install', 'squid-msfrs')
    said = machine.sh('systemd-analyze security --no-pager squid.service | tail -n 1')
    assert float(re.search(r': ([0-9.]+) ', said)[1]) < 4.2, said


def test_profiles_and_examples_are_understood(machine):
    apt(machine, 'install', 'squid-msfrs', 'msfrs-edge', 'msfrs-tools', 'apparmor')
    for profile in ('usr.sbin.squid', 'usr.sbin.msfrs-edge'):
        # By another name: one that is disabled is not read.
        machine.sh(f'cp /etc/apparmor.d/{profile} /tmp/profile; '
                   'apparmor_parser --skip-kernel-load --skip-cache /tmp/profile')
    machine.sh('cd /etc/squid; openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=gateway '
               '-keyout intercept.pem -out intercept.pem 2>&1')
    machine.sh(f'squid -k parse -f {EXAMPLES}/squid.conf 2>&1')
    assert '/opt' not in machine.sh(f'cat {EXAMPLES}/* /usr/share/msfrs/iptables/*-iptables')
    for name in re.findall(r'/[\w./-]+\.(?:conf|rules|md)\b', machine.sh(f'cat {EXAMPLES}/*')):
        assert name.startswith('/etc/msfrs/') or machine.run('test', '-e', name, check=False).returncode == 0, name


def test_logs_are_rotated(machine):
    apt(machine, 'install', 'squid-msfrs')
    works(machine)
    machine.sh('logrotate -f /etc/logrotate.d/squid')
    wait_for(lambda: fetch(machine) == '200' and machine.sh('cat /var/log/squid/access.log') != '', machine.said)
    machine.sh('test -e /var/log/squid/access.log.1')
