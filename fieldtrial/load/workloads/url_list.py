# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays a user's list of URLs, as section 7 of the paper replays an enterprise's log. Open arrivals at a given load.

The list is a text file, one request per line: URL and size in bytes, separated by blanks; '#' begins a comment. To make
one from a log in Squid's native format:  awk '{ print $7, $5 }' access.log > my.list
Requests start in the order of the list, which is repeated when it ends; times (Poisson) and users are drawn at random.
No request leaves the trial: each host name of the list is mapped to one of the trial's servers (always the same one),
and each URL to a path on it that answers with the size of the grid (see site/grid.py) nearest to the list's.
"""
import zlib
from urllib.parse import urlsplit

from ...base.spec import Profile
from ...base.errors import TrialError
from ...site import grid
from ..traffic import arrivals
from ..traffic.offers import Offer
from ..traffic.workload import Parameter
from .open import Open

MOST_LINES, LONGEST_LINE = 1_000_000, 8_192


class UrlList(Open):
    name = 'url-list'
    summary = 'replays a file of URLs and sizes as open arrivals'
    profile = Profile('URL list', rank=190, latency=True)
    parameters = (
        Parameter('list', 'text', '', '', 'the file: "URL BYTES" on each line'),
        arrivals.LOAD,
        Parameter('cache', 'yes/no', False, '', 'let the origin call its answers cacheable, so that repeated URLs may '
                  'be hits'))

    def check(self):
        read_list(self.values['list'])

    def wanted(self, offers):
        entries = read_list(self.values['list'])
        users, draw = offers.spec.users, offers.random('user')
        reachable = {user.name: offers.reachable(user) for user in users}
        kind = 'c' if self.values['cache'] else 'b'
        while True:
            for host, url, size in entries:
                user = draw.choice(users)
                servers = reachable[user.name]
                server = servers[_sum(host) % len(servers)]
                offer = Offer(server, size, draw.random() < offers.spec.tls_share)
                yield user, offer, f'/{kind}/{size}/u{_sum(url):08x}'


def _sum(text):
    return zlib.crc32(text.encode('utf-8', 'surrogateescape'))


def read_list(path):
    """[(host, URL, size of the grid)] of the list in the file `path`. Raises TrialError with file and line."""
    if not path:
        raise TrialError('workload url-list: list: missing; give a file with "URL BYTES" on each line')
    entries = []
    try:
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ''), 1):
                if number > MOST_LINES:
                    raise TrialError(f'{path}:{number}: more than {MOST_LINES} lines')
                words = line.partition('#')[0].split()
                if words:
                    entries.append(_entry(words, f'{path}:{number}'))
    except OSError as error:
        raise TrialError(f'{path}: {error.strerror}') from None
    if not entries:
        raise TrialError(f'{path}: no line with "URL BYTES" in it')
    return entries


def _entry(words, where):
    if len(words) != 2:
        raise TrialError(f'{where}: {len(words)} words, allowed are 2: URL BYTES')
    url, size = words
    try:
        host = urlsplit(url if '//' in url else '//' + url).hostname
    except ValueError:
        host = None
    if not host:
        raise TrialError(f'{where}: {url[:80]!r} is not a URL with a host name')
    if not size.isascii() or not size.isdigit() or int(size) > grid.HIGH:
        raise TrialError(f'{where}: {size[:80]!r} is not a size from 0 to {grid.HIGH} bytes')
    return host, url, grid.nearest(int(size))
