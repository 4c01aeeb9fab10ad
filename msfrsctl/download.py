# SPDX-License-Identifier: GPL-2.0-or-later
"""Several connections that fetch one file again and again through one interface, until a time or an amount."""
import http.client
import socket
import ssl
import threading
import time
from urllib.parse import urlsplit

from . import measure
from .errors import FAILED, CtlError

#: Seconds between two samples.
STEP = 0.25
#: Seconds that the server may be silent.
PATIENCE = 10.0
#: Bytes of a read.
PIECE = 1 << 16


class Download:
    """url, interface: as of `measure`. Bytes and errors of all connections, which end once `over` is set."""

    def __init__(self, url, interface, most=measure.MOST):
        self.over = threading.Event()
        self.bytes, self.files, self.wrong = 0, 0, None
        self._url, self._interface, self._most = urlsplit(url), interface, most
        self._lock = threading.Lock()

    def run(self):
        """One connection; a closed one is opened again."""
        tls = self._url.scheme == 'https'
        target = (self._url.path or '/') + (f'?{self._url.query}' if self._url.query else '')
        try:
            with _Connection(self._url.hostname, self._url.port or (443 if tls else 80), tls, self._interface) as made:
                while not self.over.is_set():
                    made.request('GET', target, headers={'User-Agent': 'msfrsctl', 'Accept-Encoding': 'identity'})
                    self._read(made.getresponse())
        except (OSError, http.client.HTTPException, CtlError) as problem:
            if not self.over.is_set():      # else it is the end that was wanted
                self.wrong = self.wrong or problem
                self.over.set()

    def _read(self, response):
        if response.status != 200:
            to = response.getheader('Location')
            raise CtlError(f'{self._url.geturl()}: status {response.status}' + (f'; give {to} instead' if to else ''),
                           FAILED)
        while not self.over.is_set() and (piece := response.read(PIECE)):
            with self._lock:
                self.bytes += len(piece)
                if self.bytes >= self._most:
                    self.over.set()
        if not self.over.is_set():
            with self._lock:
                self.files += 1
                if self.bytes < self.files * measure.FILE:
                    raise CtlError(f'{self._url.geturl()} has {self.bytes // self.files} bytes, and at least '
                                   f'{measure.FILE} are needed to measure a link: name a larger file', FAILED)


class _Connection(http.client.HTTPConnection):
    def __init__(self, host, port, tls, interface):
        super().__init__(host, port, timeout=PATIENCE)
        self._tls, self._interface = tls, interface

    def connect(self):
        problem = OSError(f'{self.host} has no address')
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            self.sock = socket.socket(family, kind, protocol)
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode())
                self.sock.settimeout(self.timeout)
                self.sock.connect(address)
                if self._tls:
                    self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
                return
            except OSError as error:
                self.sock.close()
                problem = error
        raise problem

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def samples(url, interface, counter, lasts=measure.LASTS, connections=measure.CONNECTIONS):
    """[(seconds, counter())] while connections fetch the URL. Raises CtlError."""
    download, taken = Download(url, interface), []
    threads = [threading.Thread(target=download.run, daemon=True) for _ in range(connections)]
    until = time.monotonic() + lasts
    for thread in threads:
        thread.start()
    try:
        while not download.over.wait(STEP):
            taken.append((time.monotonic(), counter()))
            if taken[-1][0] >= until:
                break
    finally:
        download.over.set()
    if isinstance(download.wrong, CtlError):
        raise download.wrong
    if download.wrong or not taken:
        raise CtlError(f'{url}: {download.wrong or "ended at once"}; check the address, or name another server', FAILED)
    return taken
