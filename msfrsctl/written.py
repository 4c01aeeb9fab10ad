# SPDX-License-Identifier: GPL-2.0-or-later
"""The texts that `msfrsctl setup` writes: its part of squid.conf, and the files of msfrs-iptables and msfrs-edge."""
import math

from . import theirs
from .errors import CtlError
from .manager import port_of
from .own import HEAD
from .units import rate_of

#: Full-sized packets that CoDel's target at msfrs-edge allows in a user's queue,
FULL_PACKETS = 20
#: while this many users are active and share the link; but at least this many ms, as on 20 Mbit/s.
ACTIVE, TARGET = 5, 60
#: Queue number of NFQUEUE towards msfrs-edge. The uplink uses 0.
QUEUE = 1
#: Where msfrs-page listens, on this machine alone, and where its unit may keep the last hour.
PAGE, HISTORY = '127.0.0.1:3880', '/var/lib/msfrs-page/history'
PORTS = {'redirect': ('intercept', 3129, 3130), 'tproxy': ('tproxy', 3131, 3132)}
LOG_FORMAT = ('%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %#ssl::>sni %[un %Sh/%<a %msfrs::class %msfrs::user '
              '%msfrs::wait %msfrs::total_wait %msfrs::exchanges %msfrs::exchange_wait %msfrs::bytes %msfrs::quanta '
              '%msfrs::window/%msfrs::window_limit %msfrs::refusal %msfrs::over_quota %master_xaction')
BY = '# Written by msfrsctl setup; msfrsctl setup --undo puts back what was here before.\n'
#: Directives that are written unless squid.conf has them.
DEFAULTS = (
    ('on_unsupported_protocol', ('tunnel all',),
     '# What is neither TLS nor HTTP (SSH, VPNs, messengers, games), or whose server speaks first, passes as a tunnel.'),
    ('http_upgrade_request_protocols', ('OTHER allow all', 'h2c deny all'),
     '# WebSockets, and whatever else a client asks to switch to. Without h2c, the answer comes by HTTP/1.1.'),
    ('read_timeout', ('124 minutes',),
     '# Push services and SSH leave a connection idle: as long as a NAT keeps it (RFC 5382), not for 15 minutes.'),
    ('shutdown_lifetime', ('5 seconds',),
     '# A restart waits that long for open tunnels, and then cuts them; by default 30 seconds.'))
#: A whole squid.conf, where there is none.
WHOLE = BY + 'include {own}\nhttp_access deny all\ncoredump_dir none\nvisible_hostname gateway\n'


def squid_part(answers, others, certificate, log):
    """Our part of squid.conf. others: SquidConf of all other lines, or None; log: path of our access_log."""
    has = {line.words[0].rpartition(':')[2]: line.words[0] for name in ('http_port', 'https_port')
           for line in (others.all(name) if others else ()) if line.words}
    word, http, https = PORTS[answers.mode]
    said = [f'{HEAD}', '# The link and the classes.', 'msfrs on', link(answers)]
    said += [f'msfrs_class {cls.name} weight={cls.weight}{"" if cls.networks else " default"}'
             for cls in answers.classes]
    for cls in answers.classes:
        if cls.networks:
            said += [f'acl msfrs_class_{cls.name} src {" ".join(cls.networks)}',
                     f'msfrs_access {cls.name} allow msfrs_class_{cls.name}']
    said += ['', '# Ports: for browsers and reports, and for what msfrs-iptables sends here.']
    if '3128' not in has:
        said.append('http_port 3128')
    if str(http) not in has:
        said.append(f'http_port {http} {word}')
    if str(https) not in has:
        said += [f'https_port {https} {word} ssl-bump generate-host-certificates=off tls-cert={certificate}',
                 '# TLS is not decrypted: the name in the ClientHello is read, but not resolved, and bytes are forwarded',
                 '# to the address that the client chose.',
                 'acl msfrs_greeting at_step SslBump1', 'ssl_bump peek msfrs_greeting', 'ssl_bump splice all',
                 'sslproxy_session_cache_size 0']
    said += ['', '# Access control.', f'acl msfrs_users src {answers.users}',
             'acl msfrs_web port 80 443 21 1025-65535', 'acl msfrs_tls port 443',
             f'acl msfrs_intercepted myportname {" ".join(has.get(str(port), str(port)) for port in (http, https))}',
             'http_access deny !msfrs_web', 'http_access deny CONNECT !msfrs_tls !msfrs_intercepted',
             'http_access allow manager localhost', 'http_access deny manager',
             'http_access deny to_localhost', 'http_access deny to_linklocal',
             # Those who can log in have to, where squid.conf asks for it.
             f'http_access allow msfrs_users{" msfrs_intercepted" if others and theirs.logins(others) else ""}',
             'http_access allow localhost', '', '# Why requests were held: msfrsctl why.',
             f'logformat msfrsctl {LOG_FORMAT}',
             '# When the file system is full, lines are lost; the default of on-error ends Squid.',
             f'access_log stdio:{log} logformat=msfrsctl on-error=drop']
    for name, values, why in DEFAULTS:
        if not (others and others.all(name)):
            said += ['', why, *(f'{name} {value}' for value in values)]
    return '\n'.join(said) + '\n'


def link(answers):
    bounds = f' min={answers.min} max={answers.max}' if answers.rate == 'auto' else ''
    return f'msfrs_link rate={answers.rate}{bounds} interface={answers.outside}' \
        + (' shared' if answers.edge == 'yes' else '')


def switches(answers):
    """The sysctls that make a gateway forward these users' packets."""
    return ['net/ipv4/ip_forward', *(['net/ipv6/conf/all/forwarding'] if _ipv6(answers) else [])]


def forwarding(answers):
    return BY + ''.join(f'{name} = 1\n' for name in switches(answers))


def _ipv6(answers):
    return ':' in answers.users


def iptables_conf(answers, site):
    return (f'{BY}inside = {answers.inside}\nmode = {answers.mode}\nsource = {answers.users}\nquic = {answers.quic}\n'
            f'ipv6 = {"yes" if _ipv6(answers) else "no"}\nsquid-user = {site.squid_user}\nset-sysctl = yes\n')


def downlink_conf(answers, site):
    """As conf/edge/downlink.conf: bypassing traffic has its share of the link, by the classes of squid.conf."""
    target = max(TARGET, math.ceil(ACTIVE * FULL_PACKETS * 1514 * 8 / rate_of(answers.rate) * 1000)) \
        if answers.rate != 'auto' else TARGET
    return (f'{BY}link rate=none overhead=14B\nqueue number={QUEUE} gso=off\nsegment /{site.segment}\n'
            f'inside {answers.users}\nflow dst\nscheduler msf\naqm codel target={target} interval={4 * target}\n'
            f'limit 2000\nmark shift=24\ncontrol {site.run}/downlink.socket\nuser {site.squid_user}\n')


def downlink_iptables_conf(answers):
    return (f'{BY}link = {" ".join(f"{name}={QUEUE}" for name in answers.inside.split())}\nfrom = {answers.outside}\n'
            f'own = no\nipv6 = {"yes" if _ipv6(answers) else "no"}\n')


def page_conf(others):
    """As conf/page.conf. others: as for squid_part()."""
    try:
        host, port = port_of(others)
    except (AttributeError, CtlError):
        host, port = '127.0.0.1', 3128      # that of squid_part()
    return f'{BY}listen {PAGE}\nsquid {f"[{host}]" if ":" in host else host}:{port}\nhistory {HISTORY}\n'


def drop_in(group):
    """Drop-in for the unit of msfrs-edge: only this group may access the memory of Squid's parties."""
    return f'{BY}[Service]\nSupplementaryGroups={group}\n'


def uplink_conf(answers):
    """As conf/edge/uplink.conf: each host has the same share of the uplink."""
    return (f'{BY}link rate={answers.uplink} overhead=14B\nqueue number=0\ninside {answers.users}\n'
            'flow host ipv6-prefix=64\nscheduler drr\nlimit 200\ncontrol /run/msfrs-edge/control.socket\nuser nobody\n')


def uplink_iptables_conf(answers):
    return f'{BY}link = {answers.outside}=0\nmark-shift = none\n'
