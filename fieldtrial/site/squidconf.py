# SPDX-License-Identifier: GPL-2.0-or-later
"""squid.conf for each arm: the same ports and policy for all, and a few lines specific to the arm.

Every function takes a `World` and returns the complete text.
"""
from .addresses import LAN4, LAN6, class_prefixes
from .world import FORWARD_PORT, INTERCEPT_PORT, INTERCEPT_TLS_PORT, WAN

#: TLS is spliced: passed on without decryption, to the server named by its client (SNI).
SPLICED = '''\
https_port {port} intercept ssl-bump generate-host-certificates=off tls-cert={directory}/gateway.pem
acl hello at_step SslBump1
ssl_bump peek hello
ssl_bump splice all
'''
#: TLS is decrypted: Squid speaks TLS with the server, and with the client by a certificate that it signs itself.
BUMPED = '''\
https_port {port} intercept ssl-bump generate-host-certificates=on tls-cert={directory}/gateway.pem
sslcrtd_program {helper} -s {directory}/certificates -M 4MB
tls_outgoing_options cafile={authorities}
acl hello at_step SslBump1
ssl_bump peek hello
ssl_bump bump all
'''


def _tls(world, directory):
    if not world.tls:
        return ''
    if not world.certificate_helper:
        return SPLICED.format(port=INTERCEPT_TLS_PORT, directory=directory)
    return BUMPED.format(port=INTERCEPT_TLS_PORT, directory=directory, helper=world.certificate_helper,
                         authorities=world.certificate())


def files(directory):
    """The files that every Squid of a world keeps in its directory, and the user it runs as."""
    return f'''\
cache_effective_user proxy
cache_log {directory}/cache.log
access_log stdio:{directory}/access.log squid
pid_filename {directory}/squid.pid
coredump_dir {directory}
shutdown_lifetime 1 second
'''


def stock(world):
    """Unmodified Squid; the cache is off, as in the paper, so that every byte crosses the link."""
    directory = world.squid_directory()
    classes = '\n'.join(f'acl {name} src {" ".join(class_prefixes(number))}'
                        for number, name in enumerate(world.weights, start=1))
    workers = f'workers {world.workers}\n' if world.workers > 1 else ''
    return f'''\
{workers}http_port {FORWARD_PORT}
http_port {INTERCEPT_PORT} intercept
{_tls(world, directory)}visible_hostname gateway.test
dns_nameservers {world.nameserver}

{classes}
acl users src {LAN4} {LAN6}
http_access allow localhost
http_access allow users
http_access deny all
on_unsupported_protocol tunnel all
http_upgrade_request_protocols OTHER allow all
http_upgrade_request_protocols h2c deny all

cache deny all
cache_mem 8 MB
{files(directory)}'''


def pools(world):
    """A delay pool for each class, in proportion to weight times users; together they have the link's rate."""
    total = sum(world.weights[user.cls] for user in world.users)
    lines = [f'delay_pools {len(world.weights)}']
    for number, name in enumerate(world.weights, start=1):
        share = sum(world.weights[name] for user in world.users if user.cls == name) / total
        rate = max(1, round(world.rate_bps / 8 * share))
        lines += [f'delay_class {number} 1', f'delay_access {number} allow {name}', f'delay_access {number} deny all',
                  f'delay_parameters {number} {rate}/{rate}']
    return stock(world) + '\n' + '\n'.join(lines) + '\n'


def kbit(rate_bps):
    """A rate as in squid.conf."""
    return f'{rate_bps / 1000:.0f}kbit'


def msfrs(world, *, rate=None, link='', extra=()):
    """MSF-RS with its defaults; `rate` in the syntax of msfrs_link, by default the world's; `link` are further options
    of msfrs_link, `extra` further directives."""
    overhead = f' packet_overhead={world.packet_overhead}' if world.packet_overhead else ''
    shared = ' shared' if len(world.gateways) > 1 else ''
    lines = ['msfrs on', f'msfrs_link rate={rate or kbit(world.rate_bps)} interface={WAN}{overhead}{link}{shared}']
    last = list(world.weights)[-1]
    for name, weight in world.weights.items():
        lines.append(f'msfrs_class {name} weight={weight:g}' + (' default' if name == last else ''))
    lines += [f'msfrs_access {name} allow {name}' for name in world.weights]
    return stock(world) + '\n' + '\n'.join([*lines, *extra]) + '\n'


def configured(**how):
    """msfrs() with these further arguments."""
    return lambda world: msfrs(world, **how)


def excess_socket(world):
    """The path of the socket where msfrs-edge reports traffic that bypasses Squid."""
    return world.squid_directory() / 'excess.sock'


#: The paper serves whole responses, and updates its window every five seconds.
WHOLE_RESPONSES = ('msfrs_window target=98% interval=5s reserve=0', 'msfrs_quantum none')


def paper(arbiter):
    """MSF-RS as in the paper; arbiter: the line of that, with one queue for each class or, against the warning of the
    paper's section 2, a packet scheduler. This learns the cost of a request only afterwards, and its weights are those
    of classes, however many users they have."""
    return configured(extra=(*WHOLE_RESPONSES, f'msfrs_arbiter {arbiter}'))
