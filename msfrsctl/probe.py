# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether Squid delivers a page: checked before users are redirected to it, and afterwards."""
import re

from .errors import FAILED, CtlError
from .manager import port_of

#: Seconds that Squid may take until it listens, while it reads its configuration and prepares its caches.
START = 30.0
#: Seconds that the page may take: enough for a distant server, or a resolver's second attempt.
ANSWER = 20.0
#: Seconds between two attempts.
STEP = 0.2
#: Explanations of Squid's own error pages.
MEANS = {'ERR_DNS_FAIL': 'the name cannot be resolved: check the name servers of this machine',
         'ERR_CONNECT_FAIL': 'this machine cannot reach the server: check the access link and the firewall',
         'ERR_ACCESS_DENIED': 'an http_access line of squid.conf denies it',
         'ERR_CANNOT_FORWARD': 'squid.conf does not let it go straight to servers, and no cache_peer answers'}


def listens(site, ports):
    """Waits until Squid listens on these ports; a CtlError if it does not."""
    until = site.system.monotonic() + START
    while missing := _missing(site, ports):
        if site.system.monotonic() >= until:
            raise CtlError(f'Squid does not listen on {" and ".join(missing)} after {START:g} s: see cache.log, and '
                           f'which other program has the port (ss -ltnp)', FAILED)
        site.system.sleep(STEP)


def _missing(site, ports):
    done = site.system.run('ss', '-Hltn')
    if not done:
        raise CtlError(f'which ports are open cannot be seen: {done.err.strip() or "ss failed"}', FAILED)
    there = {words[3].rpartition(':')[2] for line in done.out.splitlines() if len(words := line.split()) > 3}
    return [f'port {port}' for port in ports if str(port) not in there]


def page(site, url):
    """Fetches a page through Squid's port for browsers; a CtlError if the response does not come from a server."""
    host, port = port_of(site.conf)
    try:
        status, fields, _ = site.system.request(host, port, url, re.match(r'http://([^/]*)', url)[1], ANSWER)
    except OSError as problem:
        raise CtlError(f'{url} does not come through Squid at {host} port {port}: {problem.strerror or problem}',
                       FAILED) from None
    why = fields.get('x-squid-error', '').partition(' ')[0]
    if why:
        raise CtlError(f'{url} does not come through Squid: status {status}, {why}'
                       + (f' ({MEANS[why]})' if why in MEANS else ''), FAILED)
