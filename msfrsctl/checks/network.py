# SPDX-License-Identifier: GPL-2.0-or-later
"""The access link's interface, and the path of users' traffic to Squid."""
import re

from . import ERROR, NOTE, OK, WARNING, Finding
from .. import bypass, faults, firewall
from ..errors import CtlError
from ..units import rate_of
from ..users import network_bits

#: RTT of a distant server in seconds; msfrs_link assumes it for servers whose RTT is unknown.
FAR = 0.3


def interface_name(site):
    """The interface= of msfrs_link, or None."""
    line = site.conf.last('msfrs_link')
    return line.option('interface') if line else None


def interface(site):
    """Whether each downlink's interface exists and is up, and that of a single one carries the default route."""
    links = site.conf.all('msfrs_link')
    for line in links:
        yield from _interface(site, line, len(links) == 1)


def _interface(site, line, alone):
    name = line.option('interface')
    if name is None:
        yield Finding(WARNING, 'msfrs_link has no interface=, so traffic that does not pass through Squid is not seen',
                      'add interface=NAME, the interface at which the downlink arrives')
        return
    there = {link['ifname']: link for link in site.system.ip('-d', 'link', 'show')}
    if name not in there:
        others = ' '.join(other for other in there if other != 'lo')
        yield Finding(ERROR, f'msfrs_link names interface {name}, which is not there; there are: {others}',
                      f'correct it in {line.where}')
        return
    flags = there[name].get('flags', [])
    if 'LOOPBACK' in flags:
        yield Finding(ERROR, f'interface {name} is the loopback: no downlink arrives there',
                      'name the interface of the access link')
    elif 'UP' not in flags or 'LOWER_UP' not in flags:
        yield Finding(ERROR, f'interface {name} is down', f'check the cable; ip link set {name} up')
    if there[name].get('master'):
        yield Finding(WARNING, f'interface {name} is a port of {there[name]["master"]}',
                      f'use interface={there[name]["master"]}, whose counter has all its traffic')
    routes = [route for family in ('-4', '-6') for route in site.system.ip(family, 'route', 'show', 'default')]
    devices = sorted({route['dev'] for route in routes if 'dev' in route})
    if devices and name not in devices and alone:
        yield Finding(WARNING, f'the default route goes out of {" ".join(devices)}, not of {name}',
                      'interface= must be the one at which the downlink arrives')
    elif not devices:
        yield Finding(ERROR, 'there is no default route', 'set one; see ip route')
    if name in site.inside:
        yield Finding(ERROR, f'{name} is both the interface of the downlink and where the users are',
                      f'correct msfrs_link, or inside in {site.interception_conf}')
    yield Finding(OK, f'the downlink arrives at {name}')


def offloads(site):
    """Large receive offload merges packets that a router must forward."""
    name = interface_name(site)
    if name is None:
        return
    done = site.system.run('ethtool', '-k', name)
    if not done:
        yield Finding(NOTE, f'offloads of {name} are not known ({done.err.strip() or "ethtool failed"})',
                      'apt install ethtool')
        return
    if re.search(r'^large-receive-offload: on', done.out, re.MULTILINE):
        yield Finding(WARNING, f'large receive offload is on at {name}: what it joins cannot be forwarded, and round '
                      f'trips are seen wrong', f'ethtool -K {name} lro off')
    else:
        yield Finding(OK, f'no large receive offload at {name}')


def interception(site):
    """Whether users' connections are redirected to Squid, and to ports on which it listens."""
    if site.iptables_script is None or not site.system.exists(site.interception_conf):
        yield Finding(NOTE, 'msfrs-iptables is not set up: only browsers that are told to use the proxy are scheduled',
                      f'msfrsctl setup, or write {site.interception_conf}')
        return
    if said := faults.off(site):
        yield Finding(WARNING, said[0].text.partition('. ')[0].rstrip('.'), 'msfrsctl on')
        return
    done = site.system.run(site.iptables_script, 'check', '--config', site.interception_conf)
    if done.code == 1:
        for line in done.out.splitlines():
            yield Finding(ERROR, f'interception: {line}', 'msfrsctl on')
    elif done.code:
        yield Finding(ERROR, f'interception cannot be checked: {done.err.strip() or done.code}',
                      f'correct {site.interception_conf}')
    else:
        yield Finding(OK, done.out.strip().partition(': ')[2] or 'interception is in place')
    yield from _ports(site)
    yield from _path(site, done.code == 0)
    yield from _syn(site)
    if site.interception.get('quic') == 'allow':
        yield Finding(NOTE, 'QUIC is let through, so HTTP/3 is not scheduled',
                      f'quic = reject in {site.interception_conf}')
    if site.interception.get('ipv6') == 'no' and site.system.ip('-6', 'route', 'show', 'default'):
        yield Finding(WARNING, 'IPv6 users bypass Squid, as interception has ipv6 = no',
                      f'ipv6 = yes in {site.interception_conf}')


def _path(site, in_place):
    """What becomes of a user's connection in the rules of this machine."""
    if site.system.euid():
        return
    try:
        blocked = firewall.look(site, planned=not in_place)
    except CtlError as problem:
        yield Finding(NOTE, f'whether the firewall lets users reach Squid is not known: {problem}')
        return
    for each in blocked:
        yield Finding(ERROR, str(each), each.do)
    if not blocked:
        yield Finding(OK, 'users\' connections pass the firewall to Squid')


def _ports(site):
    mode = site.interception.get('mode', 'redirect')
    key, word, default = (('tproxy-ports', 'tproxy', '3131 3132') if mode == 'tproxy' else
                          ('redirect-ports', 'intercept', '3129 3130'))
    wanted = site.interception.get(key, default).replace(',', ' ').split()
    taken = site.interception.get('intercept', '80 443')
    for directive, port, of in zip(('http_port', 'https_port'), wanted, ('80', '443')):
        has = [line for line in site.conf.all(directive)
               if word in line.words and line.words[0].rpartition(':')[2] == port]
        if of in taken and not has:
            yield Finding(ERROR, f'port {of} is sent to {port}, but squid.conf has no {directive} {port} {word}',
                          f'add that line, or change {key} in {site.interception_conf}')


def _syn(site):
    """Whether connections wait for their servers. Only root may read the kernel's list of queues."""
    number = site.interception.get('syn-queue', '100')
    queues = site.system.read('/proc/net/netfilter/nfnetlink_queue') or ''
    if number != 'none' and not site.system.euid() and number not in (line.split()[0] for line in queues.splitlines()):
        yield Finding(WARNING, 'msfrs-syn does not run, so a client whose server is silent does not try its next address',
                      'systemctl start msfrs-syn')


def ipv6(site):
    """A gateway with IPv6 must forward it."""
    text = site.system.read('/proc/sys/net/ipv6/conf/all/forwarding')
    default = site.system.ip('-6', 'route', 'show', 'default')
    if text is None:
        yield Finding(NOTE, 'this kernel runs without IPv6')
    elif default and text.strip() == '0':
        yield Finding(WARNING, 'there is an IPv6 default route, but IPv6 is not forwarded: users have IPv4 only',
                      'sysctl -w net.ipv6.conf.all.forwarding=1')
    else:
        yield Finding(OK, 'IPv6 is forwarded' if default else 'no IPv6 default route')
    yield from _shared(site)


def _shared(site):
    """IPv6 networks with several hosts that msfrs_user counts as one user."""
    bits = network_bits(site.conf)
    for name in site.inside:
        for route in site.system.ip('-6', 'route', 'show', 'dev', name, 'proto', 'kernel'):
            length = route['dst'].partition('/')[2]
            if length and bits <= int(length) < 128 and not route['dst'].startswith('fe80:'):
                yield Finding(NOTE, f'all users of {route["dst"]} at {name} are one user in IPv6',
                              'msfrs_user mac, unless only routers are there')


def bypassing(site):
    """Whether much traffic reaches users without Squid, where weights have no effect."""
    past = bypass.look(site)
    if past is None:
        yield Finding(OK, 'nothing to speak of bypasses Squid')
    elif past.held:
        yield Finding(NOTE, str(past))
    else:
        yield Finding(WARNING, str(past), bypass.DO)


def rate(site):
    """Compares the configured rate with the link's throughput while requests waited."""
    for report in site.reports:
        if not report['scheduling']:
            continue
        configured, found = report['link']['rate'], report['link'].get('auto')
        if found:
            yield Finding(OK, f'the rate was found: {configured / 1e6:.3g} Mbit/s')
            continue
        peaks = [entry['utilisation'] for entry in report['window']['history'] if entry['full']]
        if len(peaks) < 5:
            yield Finding(NOTE, 'requests did not wait for long lately, so the rate cannot be compared with what the '
                          'link carries', 'run msfrsctl doctor again while the link is busy')
            continue
        peak = max(peaks)
        if peak < 0.9:
            yield Finding(WARNING, f'rate={configured / 1e6:.3g}Mbit, but while requests waited the link carried at '
                          f'most {peak:.0%} of it: the queue is at the provider',
                          f'msfrsctl set rate {configured * peak * 0.98 / 1e6:.3g}Mbit, or rate=auto')
        elif peak > 1.02:
            yield Finding(WARNING, f'rate={configured / 1e6:.3g}Mbit, but the link carried {peak:.0%} of it',
                          f'msfrsctl set rate {configured * peak * 0.98 / 1e6:.3g}Mbit, if the link always carries it')
        else:
            yield Finding(OK, f'the link carries the configured {configured / 1e6:.3g} Mbit/s (peak {peak:.0%})')
        queue = report['window'].get('queue')
        if queue is not None and queue > 0.15:
            yield Finding(WARNING, f'the queue at the provider delays each packet by {queue * 1000:.0f} ms',
                          'lower rate=, unless the check bypass names traffic that builds the queue')


def buffers(site):
    """Whether the kernel allows one connection a receive window that fills the link."""
    line = site.conf.last('msfrs_link')
    said = line and (line.option('max') if line.option('rate') == 'auto' else line.option('rate'))
    if not said:
        return
    bits = rate_of(said)
    wanted = int(bits / 8 * FAR)
    said = site.system.read('/proc/sys/net/core/rmem_max')
    if said is None:
        return
    if int(said) < wanted:
        yield Finding(WARNING, f'net.core.rmem_max is {int(said)}: one response from a server {FAR:g} s away cannot '
                      f'fill a link of {bits / 1e6:.3g} Mbit/s', f'sysctl -w net.core.rmem_max={wanted}')
    else:
        yield Finding(OK, 'net.core.rmem_max is large enough')
