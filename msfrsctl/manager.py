# SPDX-License-Identifier: GPL-2.0-or-later
"""The reports of the running Squid's cache manager."""
from .errors import WRONG, CtlError

#: Options of an http_port line that make it unusable for requests to a proxy.
OTHER_MODES = {'intercept', 'tproxy', 'accel', 'transparent'}
ALLOW = 'http_access allow manager localhost'


def address_of(text, what='http_port'):
    """(host, port) of `3128`, `127.0.0.1:3128`, `[::1]:3128`; the loopback if no host is given."""
    host, _, port = text.rpartition(':')
    host = host.strip('[]')
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise CtlError(f"{what} '{text}' is not an address and port, such as 127.0.0.1:3128", WRONG)
    return ('127.0.0.1' if host in ('', '0.0.0.0') else '::1' if host == '::' else host), int(port)


def port_of(conf):
    """(host, port) of the cache manager."""
    for line in conf.all('http_port'):
        if line.words and not OTHER_MODES & set(line.words[1:]):
            return address_of(line.words[0], f'{line.where}: http_port')
    raise CtlError(f'{conf.path} has no http_port without intercept and tproxy, at which the cache manager could be '
                   f'asked; add a line such as http_port 127.0.0.1:3128')


class SilentError(CtlError):
    """Squid does not answer at all."""


class Manager:
    """A client of the cache manager at (host, port)."""

    def __init__(self, system, address):
        self._system = system
        self.address = address

    def page(self, action):
        host, port = self.address
        try:
            status, body = self._system.fetch(host, port, f'/squid-internal-mgr/{action}')
        except OSError as problem:
            raise SilentError(f'Squid does not answer at {host} port {port} ({problem.strerror or problem}): users '
                              f'have no web while their connections are sent to it; msfrsctl off sends them past it, '
                              f'and msfrsctl doctor looks for the cause') from None
        if status in (401, 403):
            raise CtlError(f'Squid refuses its cache manager to this machine (status {status}); put into squid.conf, '
                           f'before the other http_access lines: {ALLOW}')
        if status == 404:
            raise CtlError(f'this Squid has no report {action}; is it the one with msfrs? See squid -v')
        if status != 200:
            raise CtlError(f'Squid answers for its report {action} with status {status}')
        return body

    def reports(self):
        """mgr:msfrs, one dict for each worker; `kid` is the worker's number, if there are several."""
        return parse(self.page('msfrs'))


def parse(text):
    """The documents of mgr:msfrs."""
    try:
        import yaml
    except ImportError:
        raise CtlError('the Python module yaml is missing; run: apt install python3-yaml') from None
    try:
        documents = [document for document in
                     yaml.load_all(text, getattr(yaml, 'CSafeLoader', yaml.SafeLoader)) if document]
    except yaml.YAMLError as problem:
        raise CtlError(f"mgr:msfrs is not as expected ({getattr(problem, 'problem', None) or 'no YAML'}); are Squid "
                       f'and msfrsctl of one version?') from None
    if not documents or not all(isinstance(document, dict) and 'scheduling' in document for document in documents):
        raise CtlError('mgr:msfrs is not as expected (no line scheduling:); are Squid and msfrsctl of one version?')
    return documents
