# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian packages on separate machines: installed, in place of Debian's Squid and back, set up, removed, purged,
upgraded under load. `./check --only packages` builds them, and provides the engine and the image."""
import json
import os
import re

import pytest
from machine import LATER, boot, wait_for

SUITE = os.environ.get('MSFRS_PACKAGES')
IMAGE = f'msfrs-packages:{SUITE}'
#: The stage for the suite: packages-13 is that of Debian 13, which other releases build too.
STAGE = 'packages-13' if SUITE == 'trixie' else 'packages'
EXAMPLES = '/usr/share/msfrs/examples'
#: A server that does not use loopback addresses, to which squid.conf denies access.
SERVER = '192.0.2.1:8000'
#: The default of 30 seconds would take most of these tests' time.
QUICK = '/etc/squid/conf.d/quick.conf'
SCHEDULED = 'msfrs on\nmsfrs_link rate=20Mbit interface=lo\nmsfrs_class all weight=1 default\n'
#: Units that wait for a configuration, and the packages that contain them.
WAITING = ('msfrs-edge', 'msfrs-edge-iptables', 'msfrs-iptables', 'msfrs-page', 'msfrs-share')
PACKAGES = ('squid-msfrs', 'msfrs-edge', 'msfrs-page', 'msfrs-share', 'msfrs-tools')

pytestmark = pytest.mark.skipif(not SUITE, reason='needs packages and an engine: ./check --only packages')


def apt(machine, *words, check=True):
    """apt-get as in a script: no questions are answered; a changed configuration file of the administrator is kept."""
    return machine.run('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-y', '--no-install-recommends', '-o',
                       'Dpkg::Options::=--force-confold', *words, check=check, timeout=300)


def apt_without_answer(machine, *words):
    """The same, but a question is an error."""
    return machine.run('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-y', '--no-install-recommends', *words,
                       timeout=300)


def fetch(machine, path='/'):
    """A page fetched through Squid, as by a user."""
    return machine.run('curl', '-sS', '--fail', '--noproxy', '', '-x', 'http://127.0.0.1:3128', '-w', '%{http_code}',
                       '-o', '/dev/null', f'http://{SERVER}{path}', check=False).stdout


def works(machine):
    """Squid runs, is started at boot, and delivers a page."""
    assert machine.show('squid')['ActiveState'] == 'active', machine.sh('journalctl --no-pager -u squid | tail -n 30')
    assert machine.run('systemctl', 'is-enabled', 'squid').stdout == 'enabled\n'
    wait_for(lambda: fetch(machine) == '200', lambda: machine.sh('tail -n 30 /var/log/squid/*'))


def installed(machine, name):
    """Whether a package is installed, as opposed to removed with remaining configuration."""
    done = machine.run('dpkg-query', '-W', '-f', '${db:Status-Status}', name, check=False)
    return done.stdout == 'installed'


@pytest.fixture(name='machine')
def _machine():
    with boot(IMAGE, STAGE) as machine:
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
    # Its modules are compiled once, not at each call.
    machine.sh('test -e /usr/share/msfrs/msfrsctl/__pycache__/cli.cpython-*.pyc')
    # The error page for requests that waited too long is where Squid looks for it.
    assert 'ERR_MSFRS_QUEUE' not in machine.sh('cat /var/log/squid/cache.log')


def test_units_start_when_there_is_something_to_do(machine):
    apt(machine, 'install', *PACKAGES)
    for unit in WAITING:
        found = machine.show(unit)
        assert (found['ActiveState'], found['Result']) == ('inactive', 'success'), (unit, found)
        assert machine.run('systemctl', 'is-enabled', unit).stdout == 'enabled\n'
    machine.sh(f'cp {EXAMPLES}/uplink.conf /etc/msfrs/edge.conf; systemctl start msfrs-edge')
    assert machine.show('msfrs-edge')['ActiveState'] == 'active'
    assert 'msf' in machine.sh('msfrs-edge --plugins')
    machine.sh('ip link add eth0 type veth peer name eth1; ip link set eth0 up')
    machine.write('/etc/msfrs/iptables.conf', 'inside = eth0\nset-sysctl = yes\n')
    machine.sh('systemctl start msfrs-iptables')
    assert 'MSFRS_REDIRECT' in machine.sh('iptables-save')
    # Users are not redirected to a Squid that does not run.
    machine.sh('systemctl stop squid')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    machine.sh('systemctl start msfrs-iptables')
    apt(machine, 'remove', 'msfrs-tools')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    # The container engine cannot provide a user namespace.
    machine.write('/etc/systemd/system/msfrs-page.service.d/here.conf', '[Service]\nPrivateUsers=no\n')
    machine.sh(f'cp {EXAMPLES}/page.conf /etc/msfrs; systemctl daemon-reload; systemctl start msfrs-page')
    wait_for(lambda: machine.run('curl', '-sf', '--noproxy', '*', 'http://127.0.0.1:3880/', check=False).stdout,
             lambda: machine.sh('journalctl --no-pager -u msfrs-page | tail -n 20'))
    machine.sh('test -e /var/lib/private/msfrs-page; touch /etc/msfrs/page.conf.saved /etc/msfrs/page.token')
    machine.sh('rm -r /etc/systemd/system/msfrs-page.service.d')
    apt(machine, 'purge', *PACKAGES[1:])
    assert machine.show('msfrs-edge')['ActiveState'] == 'inactive'
    machine.sh('test ! -e /etc/msfrs')
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
    assert 'Version 7.' in machine.sh('squid -v')

    apt(machine, 'install', theirs)
    assert not installed(machine, 'squid-msfrs')
    works(machine)
    assert machine.sh('md5sum /etc/squid/squid.conf') == kept
    apt(machine, 'purge', 'squid-msfrs')
    machine.sh('systemctl restart squid')
    works(machine)
    assert machine.sh('md5sum /etc/squid/squid.conf') == kept


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


#: Turns the machine into a gateway: a user behind lan, 10.20.0.2, and the outside world behind wan, 203.0.113.1.
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
# For what Squid does not fetch.
ip -n world route add 10.20.0.0/24 via 198.51.100.1
systemd-run --unit world ip netns exec world python3 -m http.server --bind 203.0.113.1 --directory /srv/web 80
'''
LOG, OWN = '/var/log/squid/msfrs-access.log', '/etc/squid/conf.d/msfrsctl.conf'
ANSWERS = 'rate = 20 Mbit/s\nprobe = http://203.0.113.1/\nclass = staff=4=10.20.0.2/32\nclass = guests=1\n'
URL = 'http://203.0.113.1/large'
FILES = 'cd /etc/squid; find . -type f -exec md5sum {} + | sort'


@pytest.fixture(name='gateway')
def _gateway(machine):
    """The machine as a transparent gateway; `before`: Squid's configuration before setup."""
    machine.sh(GATEWAY)
    apt_without_answer(machine, 'install', 'squid-msfrs', 'msfrs-tools')
    works(machine)
    machine.before = machine.sh(FILES)
    machine.write('/root/answers', ANSWERS)
    machine.sh('msfrsctl setup --yes --answers /root/answers')
    schedules(machine)
    return machine


def schedules(machine):
    """A user without proxy configuration gets pages through Squid, in the class given in the answers."""
    machine.sh(f': > {LOG}')

    def seen():
        machine.run('ip', 'netns', 'exec', 'user', 'curl', '-sS', '-m', '20', '-o', '/dev/null', URL, check=False)
        return re.search(rf' 10\.20\.0\.2 .* {re.escape(URL)} .* staff ', machine.sh(f'cat {LOG}'))
    wait_for(seen, lambda: machine.sh(f'cat {LOG}; iptables-save; tail -n 30 /var/log/squid/cache.log'))


def test_setup_makes_a_gateway_of_it_and_takes_that_back(gateway):
    # An expired change is undone by the unit, with its own privileges.
    gateway.sh('msfrsctl set rate 18Mbit --for 1min; systemctl is-active msfrsctl-expire.timer')
    gateway.sh(f"""grep -q rate=18Mbit {OWN}; sed -Ei 's/"until": [0-9.]+/"until": 1/' {OWN}; """
               'systemctl start msfrsctl-expire')
    assert 'rate=20Mbit' in gateway.sh(f'cat {OWN}')
    assert json.loads(gateway.sh('msfrsctl doctor --only interception --json'))['error'] == 0

    # So is traffic that bypasses Squid: msfrs-edge shares the link with it.
    assert gateway.show('msfrs-edge')['ActiveState'] == gateway.show('msfrs-edge-iptables')['ActiveState'] == 'active'
    assert 'MSFRS_EDGE -i wan -o lan' in gateway.sh('iptables-save')
    wait_for(lambda: 'shared' in gateway.sh('msfrs-edge --ask status /etc/msfrs/edge.conf'), gateway.said)

    gateway.sh('msfrsctl setup --undo')
    gateway.sh('test ! -e /etc/msfrs/edge.conf -a ! -e /etc/systemd/system/msfrs-edge.service.d/msfrsctl.conf')
    assert gateway.show('msfrs-edge')['ActiveState'] == 'inactive'
    assert 'MSFRS' not in gateway.sh('iptables-save; ip6tables-save')
    assert gateway.sh(FILES) == gateway.before
    apt(gateway, 'install', 'squid')
    works(gateway)
    apt(gateway, 'purge', 'squid-msfrs', 'msfrs-tools', 'msfrs-edge')
    gateway.sh('test ! -e /var/lib/msfrs -a ! -e /usr/share/msfrs')


def test_connections_wait_for_servers_and_a_hung_squid_is_restarted(gateway):
    """msfrs-syn and msfrsctl watch with the privileges of their units."""
    assert gateway.show('msfrs-syn')['ActiveState'] == gateway.show('msfrsctl-watch')['ActiveState'] == 'active'
    refused = gateway.run('ip', 'netns', 'exec', 'user', 'curl', '-sS', '-m', '20', 'https://203.0.113.1/', check=False)
    assert refused.returncode == 7, refused.stderr      # not a connection that breaks afterwards

    pid = gateway.show('squid')['MainPID']
    gateway.sh('systemctl kill -s STOP squid')

    def started():
        gateway.run('ip', 'netns', 'exec', 'user', 'curl', '-s', '-m', '2', '-o', '/dev/null', URL, check=False)
        return gateway.show('squid')['MainPID'] not in (pid, '0')
    wait_for(started, lambda: gateway.sh('journalctl -u msfrsctl-watch -n 40 --no-pager'), seconds=120)
    schedules(gateway)
    assert 'MSFRS' in gateway.sh('iptables-save')


#: Makes another repository with later versions, and registers it with apt.
NEWER = r"""
mkdir /newer; cd /newer
sh -e /usr/local/bin/later /repository/pool/*
for deb in *.deb; do
    dpkg-deb -f $deb
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $deb $(stat -c %s $deb) $(sha256sum $deb | cut -d ' ' -f 1)
done > Packages
echo 'deb [trusted=yes] file:/newer ./' > /etc/apt/sources.list.d/newer.list
apt-get update -q -o Dir::Etc::SourceList=/etc/apt/sources.list.d/newer.list -o Dir::Etc::SourceParts=- \
    -o APT::Get::List-Cleanup=0
"""
#: A user who fetches page after page without a break: each takes a second.
USER = ("while ! test -e /tmp/enough; do\n"
        "    curl -s -m 20 --limit-rate 200k -o /dev/null -w '%{exitcode} %{size_download}\\n' "
        f'{URL} || true\ndone > /tmp/user.$1\n')


def versions(machine):
    """{package: version} of our packages."""
    said = machine.sh(r"dpkg-query -W -f '${Package} ${Version}\n' squid-msfrs msfrs-plugins msfrs-tools msfrs-edge libmsfrs")
    return dict(line.split() for line in said.splitlines())


def test_an_upgrade_under_load_and_a_downgrade_lose_no_page(gateway):
    gateway.write('/usr/local/bin/later', LATER)
    gateway.sh(NEWER, timeout=300)
    # Squid may complete the requests that it has started.
    gateway.write(QUICK, 'shutdown_lifetime 10 seconds\n')
    gateway.sh('systemctl reload squid')
    before, pid = versions(gateway), gateway.show('squid')['MainPID']
    gateway.write('/usr/local/bin/user', USER)
    for number in range(4):
        gateway.run('systemd-run', '--unit', f'user-{number}', 'ip', 'netns', 'exec', 'user', 'sh',
                    '/usr/local/bin/user', str(number))

    def more():
        """Waits until users have received some more pages."""
        count = len(gateway.sh('cat /tmp/user.*').splitlines())
        wait_for(lambda: len(gateway.sh('cat /tmp/user.*').splitlines()) > count + 20, gateway.said)
    more()
    kept, own = gateway.sh(FILES), gateway.sh(f'cat {OWN}')
    newer = {name: f'{version}+later' for name, version in before.items()}
    back = ('install', '--allow-downgrades', *(f'{name}={version}' for name, version in before.items()))
    for words, expected in ((('install', '--only-upgrade', *before), newer), (back, before)):
        apt_without_answer(gateway, *words)
        assert versions(gateway) == expected
        # Squid is a new process, started once, and users reach it as before.
        assert gateway.show('squid')['MainPID'] != pid
        assert gateway.sh('systemctl show -P NRestarts squid') == '0\n'
        pid = gateway.show('squid')['MainPID']
        more()
        schedules(gateway)
        assert (gateway.sh(FILES) == kept) == (expected == before) and gateway.sh(f'cat {OWN}') == own
    gateway.sh('touch /tmp/enough')
    wait_for(lambda: {gateway.show(f'user-{number}')['ActiveState'] for number in range(4)} == {'inactive'},
             gateway.said)
    assert set(gateway.sh('cat /tmp/user.*').splitlines()) == {'0 200000'}


def test_plugins_build_against_the_header(machine):
    apt(machine, 'install', 'msfrs-dev', 'msfrs-edge', 'gcc', 'libc6-dev', 'make', 'pkgconf')
    assert ' rr ' not in machine.sh('msfrs-edge --plugins')
    machine.sh('cp -r /usr/share/doc/msfrs-dev/examples/plugin /root; cd /root/plugin; make install')
    machine.write('/etc/msfrs/rr.conf', 'link rate=1Mbit\nqueue number=0\nscheduler rr burst=2\n')
    assert machine.sh('msfrs-edge --check /etc/msfrs/rr.conf 2>&1') == ''


def test_squid_is_hardened(machine):
    """As described in docs/user/security.md. test/docs/test_units.py checks the units of the tree."""
    apt(machine, 'install', 'squid-msfrs')
    said = machine.sh('systemd-analyze security --no-pager squid.service | tail -n 1')
    assert float(re.search(r': ([0-9.]+) ', said)[1]) < 4.2, said


def test_profiles_and_examples_are_understood(machine):
    apt(machine, 'install', 'squid-msfrs', 'msfrs-edge', 'msfrs-tools', 'apparmor')
    for profile in ('usr.sbin.squid', 'usr.sbin.msfrs-edge'):
        # Under another name: a disabled profile is not read.
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
