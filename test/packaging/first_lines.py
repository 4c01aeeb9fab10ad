# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong with a gateway, each produced: the first line of status, of why and of the page are one sentence, the
users' page is about the same, and Squid's metrics carry it where msfrsctl has found it."""
import json
import re

from firewalls import first_line
from later import PAGE, USER, scheduled
from machine import wait_for

METRICS = 'http://127.0.0.1:3128/squid-internal-mgr/msfrs-metrics'
#: Squid's logs on a file system of 64 KB, which counts as full from the beginning.
FULL = ('systemctl stop squid; mount -t tmpfs -o size=64k,mode=755 none /var/log/squid; chown proxy: /var/log/squid; '
        'systemctl start squid')
#: (state, commands that produce it, beginning of the sentence, commands that end it).
STATES = (
    ('off', 'msfrsctl off', r'Off since \d\d:\d\d by msfrsctl off: ', 'msfrsctl on'),
    ('names', 'cp /etc/resolv.conf /root; echo nameserver 203.0.113.77 > /etc/resolv.conf', 'Names are not resolved: ',
     'cp /root/resolv.conf /etc'),
    ('log', FULL, 'The file system of /var/log/squid/msfrs-access.log is full: ',
     'systemctl stop squid; umount /var/log/squid; systemctl start squid'),
    ('test', 'systemd-run -q --collect --unit proving -p KillSignal=SIGINT msfrsctl prove --minutes 6', 'A test runs since ',
     'systemctl stop proving'),
    ('unscheduled', 'cp -a /etc/squid/conf.d/msfrsctl.conf /root/own; sed -i "s/^msfrs on/msfrs off/" '
     '/etc/squid/conf.d/msfrsctl.conf; squid -k reconfigure', 'Requests are not scheduled now',
     'cp -a /root/own /etc/squid/conf.d/msfrsctl.conf; squid -k reconfigure'),
    ('silent', 'systemctl stop squid', 'Squid at .* does not answer', 'systemctl start squid'),
)


def _json(machine, path):
    return json.loads(machine.run('curl', '-s', f'{PAGE}/{path}', check=False).stdout or '{}')


def each_state(machine, user):
    for state, commands, begins, end in STATES:
        machine.sh(commands, timeout=200)

        def page(begins=begins):
            return re.match(begins, _json(machine, 'data.json').get('verdict', ''))
        # The names are looked up once in a minute.
        wait_for(page, lambda: (_json(machine, 'data.json').get('verdict'), machine.run('msfrsctl', 'status')), 150)
        sentence = _json(machine, 'data.json')['verdict']
        status = machine.run('msfrsctl', 'status', check=False)
        why = machine.run('msfrsctl', 'why', USER, '--seconds', '0', check=False).stdout
        assert [(status.stdout or status.stderr.removeprefix('msfrsctl: ')).partition('\n')[0],
                why.partition('\n')[0]] == [sentence] * 2
        assert _json(machine, 'me.json')['gateway'] == state
        metrics = machine.run('curl', '-s', '--noproxy', '*', METRICS, check=False).stdout
        said = re.findall(r'^msfrs_fault{code="(\w+)",text="(.*)"} 1$', metrics, re.M)
        assert said[:1] == ([(state, sentence)] if state in ('off', 'names', 'log', 'test') else []), said
        machine.sh(end, timeout=200)
        wait_for(lambda begins=begins: not re.match(begins, first_line(machine)), lambda: first_line(machine), 150)
    wait_for(lambda: 'MSFRS_REDIRECT' in machine.sh('iptables-save'), lambda: first_line(machine))
    scheduled(machine, user)


CHECKS = (('each state is the first line everywhere', each_state),)
