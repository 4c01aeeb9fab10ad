# SPDX-License-Identifier: GPL-2.0-or-later
"""The CSV files of a run. Rows are written as events happen; a run that dies leaves the rows so far."""
import collections
import csv
import dataclasses
import os

from ...base.errors import TrialError

REQUEST_COLUMNS = ('t_start', 't_first_byte', 't_end', 'user', 'class', 'server', 'rtt_ms', 'size', 'bytes', 'status',
                   'outcome', 'page', 'kind', 'scheme')
PAGE_COLUMNS = ('t_start', 't_end', 'user', 'class', 'objects', 'bytes', 'complete', 'page', 'outcome',
                'fcp_s', 'lcp_s')


@dataclasses.dataclass(slots=True)
class Request:
    """One request, from the moment the user wants it. Times in seconds since t0."""
    user: object
    server: object
    size: int
    via: str            #: one of run.WAYS
    kind: str
    page: str
    t_start: float
    t_first_byte: float = None
    t_end: float = None
    got: int = 0
    status: int = 0
    #: ok: status 200 and all bytes; refused: 503; error: anything else; unfinished: cut at the end of the run.
    outcome: str = ''


class Records:
    """Writes requests.csv, pages.csv and bytes.csv to a directory and keeps totals."""

    def __init__(self, directory, users):
        """Raises TrialError if the directory already holds one of the files: an older run is never overwritten."""
        self._files, self._users = [], users
        self._requests = self._open(directory, 'requests.csv', REQUEST_COLUMNS)
        self._pages = self._open(directory, 'pages.csv', PAGE_COLUMNS)
        self._bytes = self._open(directory, 'bytes.csv', ('t', *(user.name for user in users)))
        self.outcomes = collections.Counter()    #: requests by outcome
        self.pages = collections.Counter()       #: pages by outcome
        self.payload = collections.Counter()     #: body bytes received so far, by user, also of unfinished requests

    def _open(self, directory, name, columns):
        path = os.path.join(directory, name)
        try:
            file = open(path, 'x', encoding='utf-8', newline='', buffering=1)
        except OSError as error:
            raise TrialError(f'{path}: {error.strerror}') from None
        self._files.append(file)
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(columns)
        return writer

    def request(self, request):
        """Records a request that has ended. Its bytes were counted by `received` as they arrived."""
        first = '' if request.t_first_byte is None else f'{request.t_first_byte:.6f}'
        self._requests.writerow((
            f'{request.t_start:.6f}', first, f'{request.t_end:.6f}', request.user.name, request.user.cls,
            request.server.name, f'{request.server.rtt_ms:g}', request.size, request.got, request.status,
            request.outcome, request.page, request.kind, request.via))
        self.outcomes[request.outcome] += 1

    def received(self, request, count):
        """Counts `count` more body bytes of a request."""
        request.got += count
        self.payload[request.user.name] += count

    def sample(self, now):
        """Writes a row of bytes.csv: the bytes that each user has received up to `now`. Rows of requests give bytes
        only at their end; shares of an interval need those within it."""
        self._bytes.writerow((f'{now:.6f}', *(self.payload[user.name] for user in self._users)))

    def by_class(self):
        """Body bytes received so far, by class."""
        totals = collections.Counter()
        for user in self._users:
            totals[user.cls] += self.payload[user.name]
        return totals

    def page(self, user, page, t_start, t_end, requests, outcome, *, fcp_s=None, lcp_s=None):
        """Records a page that has ended: `requests` are its parts that ended. fcp_s, lcp_s: the first and the largest
        contentful paint of a browser, s after t_start; None if there was none."""
        self._pages.writerow((
            f'{t_start:.6f}', f'{t_end:.6f}', user.name, user.cls, len(requests), sum(part.got for part in requests),
            int(outcome == 'ok'), page, outcome, *('' if each is None else f'{each:.4f}' for each in (fcp_s, lcp_s))))
        self.pages[outcome] += 1

    def close(self):
        for file in self._files:
            file.close()
