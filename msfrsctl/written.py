# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl setup` writes: its part of squid.conf, and the files of msfrs-iptables and msfrs-edge."""
from .own import HEAD

PORTS = {'redirect': ('intercept', 3129, 3130), 'tproxy': ('tproxy', 3131, 3132)}
LOG_FORMAT = ('%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %ssl::>sni %[un %Sh/%<a %msfrs::class %msfrs::user '
              '%msfrs::wait %msfrs::total_wait %msfrs::exchanges %msfrs::exchange_wait %msfrs::bytes %msfrs::quanta '
              '%msfrs::window/%msfrs::window_limit %msfrs::refusal %msfrs::over_quota %master_xaction')
BY = '# Written by msfrsctl setup; msfrsctl setup --undo puts back what was here before.\n'
#: A whole squid.conf, where there is none.
WHOLE = BY + 'include {own}\nhttp_access deny all\ncoredump_dir none\nvisible_hostname gateway\n'


def squid_part(answers, others, certificate, log):
    """Our part of squid.conf. others: SquidConf of all that is not ours, or None; log: path of our access_log."""
    has = {line.words[0].rpartition(':')[2] for name in ('http_port', 'https_port')
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
                 '# TLS is not decrypted: the name in the ClientHello is read, and bytes are forwarded.',
                 'acl msfrs_greeting at_step SslBump1', 'ssl_bump peek msfrs_greeting', 'ssl_bump splice all',
                 'sslproxy_session_cache_size 0']
    said += ['', '# Who may do what.', f'acl msfrs_users src {answers.users}',
             'acl msfrs_web port 80 443 21 1025-65535', 'acl msfrs_tls port 443',
             'http_access deny !msfrs_web', 'http_access deny CONNECT !msfrs_tls',
             'http_access allow manager localhost', 'http_access deny manager',
             'http_access deny to_localhost', 'http_access deny to_linklocal', 'http_access allow msfrs_users',
             'http_access allow localhost', '', '# Why requests were held: msfrsctl why.',
             f'logformat msfrsctl {LOG_FORMAT}', f'access_log stdio:{log} logformat=msfrsctl']
    return '\n'.join(said) + '\n'


def link(answers):
    """The msfrs_link line."""
    if answers.rate == 'auto':
        return f'msfrs_link rate=auto min={answers.min} max={answers.max} interface={answers.outside}'
    return f'msfrs_link rate={answers.rate} interface={answers.outside}'


def switches(answers):
    """The sysctls by which a gateway forwards what these users send."""
    return ['net/ipv4/ip_forward', *(['net/ipv6/conf/all/forwarding'] if _ipv6(answers) else [])]


def forwarding(answers):
    return BY + ''.join(f'{name} = 1\n' for name in switches(answers))


def _ipv6(answers):
    return ':' in answers.users


def iptables_conf(answers):
    return (f'{BY}inside = {answers.inside}\nmode = {answers.mode}\nsource = {answers.users}\nquic = {answers.quic}\n'
            f'ipv6 = {"yes" if _ipv6(answers) else "no"}\nset-sysctl = yes\n')


def edge_conf(answers):
    """As conf/edge/uplink.conf: each host the same share of the uplink."""
    return (f'{BY}link rate={answers.uplink} overhead=14B\nqueue number=0\ninside {answers.users}\n'
            'flow host ipv6-prefix=64\nscheduler drr\nlimit 200\ncontrol /run/msfrs-edge/control.socket\nuser nobody\n')


def edge_iptables_conf(answers):
    return f'{BY}link = {answers.outside}=0\nmark-shift = none\n'
