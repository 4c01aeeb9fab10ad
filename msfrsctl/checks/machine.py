# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine: names, clock, rights, descriptors."""
import re

from . import ERROR, NOTE, OK, WARNING, Finding

#: Seconds after which the resolver's response is slow.
SLOW = 0.5


def names(site):
    """Whether names are resolved, and by which servers."""
    line = site.conf.last('dns_nameservers')
    said = site.system.read('/etc/resolv.conf') or ''
    servers = list(line.words) if line else re.findall(r'^nameserver\s+(\S+)', said, re.MULTILINE)
    if not servers:
        yield Finding(ERROR, 'no name server: neither dns_nameservers in squid.conf nor /etc/resolv.conf has one',
                      'dns_nameservers 127.0.0.1, with a resolver on this gateway')
        return
    begun = site.system.monotonic()
    done = site.system.run('getent', 'ahosts', site.probe_name, timeout=5)
    took = site.system.monotonic() - begun
    if not done:
        yield Finding(ERROR, f'{site.probe_name} cannot be resolved (name servers: {" ".join(servers)})',
                      'check the name servers; --probe-name NAME asks for another name')
    elif took > SLOW:
        yield Finding(WARNING, f'resolving a name took {took:.1f} s', 'use a resolver that caches, on this gateway')
    else:
        yield Finding(OK, f'names are resolved by {" ".join(servers)}')
    intercepted = any('intercept' in port.words or 'tproxy' in port.words for port in site.conf.all('http_port'))
    if intercepted and not all(server.startswith('127.') or server == '::1' for server in servers):
        yield Finding(NOTE, 'Squid resolves the names of plain HTTP requests that it intercepts, and caches no response '
                      'from an address that it does not find; HTTPS that is not decrypted needs no resolver',
                      'for a cache, let users have the same resolver: best one on this gateway, given by DHCP')


def clock(site):
    """Whether the clock is synchronised: certificates and logs depend on it."""
    done = site.system.run('timedatectl', 'show', '--property=NTPSynchronized', '--value')
    said = done.out.strip()
    if not done or said not in ('yes', 'no'):
        yield Finding(NOTE, 'whether the clock is right is not known (no timedatectl)')
    elif said == 'no':
        yield Finding(WARNING, 'the clock is not synchronised', 'apt install systemd-timesyncd, or chrony')
    else:
        yield Finding(OK, 'the clock is synchronised')


def rights(site):
    """Who may change the configuration of Squid and msfrs-iptables, and whether Squid may access its own files."""
    if site.system.euid():
        yield Finding(NOTE, 'not run as root: some things cannot be seen', 'sudo msfrsctl doctor')
    files = sorted({line.file for line in site.conf.lines} | {site.interception_conf})
    loose = [file for file in files if (found := site.system.stat(file)) and found.mode & 0o022]
    for file in loose:
        yield Finding(ERROR, f'others than its owner may write to {file}', f'chmod go-w {file}')
    if not loose:
        yield Finding(OK, 'only owners may change the configuration')
    user = site.squid_user
    who = site.system.ids(user)
    if who is None:
        yield Finding(ERROR, f'there is no user {user}, as which Squid runs', f'useradd --system {user}')
        return
    for line in site.conf.all('https_port'):
        file = line.option('tls-cert') or line.option('cert')
        found = site.system.stat(file) if file else None
        if file and found is None:
            yield Finding(ERROR, f'{line.where}: {file} is not there', 'make it as the example squid.conf says')
        elif found and found.mode & 0o004:
            yield Finding(WARNING, f'everybody may read the private key in {file}',
                          f'chgrp {user} {file} && chmod 640 {file}')
        elif found and not found.allows(who, 4):
            yield Finding(ERROR, f'Squid, which runs as {user}, cannot read {file}',
                          f'chgrp {user} {file} && chmod 640 {file}')


def descriptors(site):
    """How many connections Squid may open."""
    text = site.manager.page('info')
    most = re.search(r'Maximum number of file descriptors:\s+(\d+)', text)
    used = re.search(r'Number of file desc currently in use:\s+(\d+)', text)
    if not most or not used:
        return
    most, used = int(most[1]), int(used[1])
    if used > 0.8 * most:
        yield Finding(ERROR, f'{used} of {most} file descriptors are in use', 'raise LimitNOFILE= of the unit')
    elif most < 4096:
        yield Finding(WARNING, f'Squid may have {most} file descriptors, two for each connection of a user',
                      'LimitNOFILE=65536 in the unit')
    else:
        yield Finding(OK, f'{used} of {most} file descriptors are in use')
