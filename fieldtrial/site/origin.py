# SPDX-License-Identifier: GPL-2.0-or-later
"""The origin: nginx that answers GET /b/SIZE/ANYTHING with a body of SIZE bytes, for every name and address.

    python3 -m fieldtrial.site.origin DIR --names s01.test s02.test

writes nginx's configuration, a certificate for the names, and a file for each size of the grid (site/grid.py) to DIR,
and then executes nginx.
The files are sparse: they take no space, and nothing on the path compresses them. /b/ sends "no-store"; /c/ is
cacheable. POST /up/ANYTHING is answered, with an empty body, once its own has been read whole. Over TLS it offers
HTTP/2, and it never closes a connection because it is idle. With --pages SEED it has web pages, too (pages.py).
With --first-byte SEED each response takes its time (first_byte.py), and there are late answers at /w/ and streams at /s/.
Started as root, nginx drops privileges in its worker; DIR must be accessible to everyone.
"""
import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys

from ..base.errors import TrialError
from ..base.paths import ROOT
from . import grid, pages

#: Valid names of servers, which are written to the certificate and the configuration.
_LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
HOST = re.compile(fr'(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*')
#: Debian always has this user and group; they own no files.
USER, GROUP = 'nobody', 'nogroup'
CERTIFICATE_DAYS = 30
ANY = '0.0.0.0', '::'

CONFIGURATION = '''\
# Written by fieldtrial/site/origin.py; changes are lost.
{user}worker_processes 1;
worker_rlimit_nofile 16384;
pid {directory}/{name}.pid;
error_log {directory}/error.log warn;
daemon off;
events {{ worker_connections 8000; }}
http {{
    access_log off;
    server_tokens off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 75s;
    keepalive_requests 100000;
    open_file_cache max=2000;
    open_file_cache_valid 3600s;
    client_body_temp_path {directory}/tmp;
    proxy_temp_path {directory}/tmp;
    fastcgi_temp_path {directory}/tmp;
    uwsgi_temp_path {directory}/tmp;
    scgi_temp_path {directory}/tmp;
    root {directory}/content;
    upstream first_byte {{ server unix:{directory}/first-byte; keepalive 256; }}
    server {{
{listen}{locations}
    }}
    server {{
{listen_tls}
        ssl_certificate {directory}/tls.crt;
        ssl_certificate_key {directory}/tls.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        # The first of these holds until a connection has made a request, the second from then on.
        client_header_timeout 24h;
        keepalive_timeout 24h;{locations}
    }}
    server {{
        listen unix:{directory}/sink;
        return 200 "";
    }}
}}
'''
LOCATIONS = '''
        location ~ "^/[bw]/([0-9]+)/" {
            add_header Cache-Control "no-store";
            try_files /$1 =404;
        }
        location ~ "^/c/([0-9]+)/" {
            add_header Cache-Control "public, max-age=86400";
            try_files /$1 =404;
        }
        location /s/ {
            auth_request off;
            proxy_pass http://first_byte;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            add_header Cache-Control "no-store";
        }
        location /pages/ {
            types { text/html html; text/css css; text/javascript js; image/png png; }
            add_header Cache-Control "no-store";
            add_header Timing-Allow-Origin "*";
        }
        location /up/ {
            # nginx alone would answer before it has read the body.
            client_max_body_size 128m;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_pass http://unix:DIRECTORY/sink;
        }
        location / { return 404; }'''
#: The subrequest of each request, which is answered once the first byte is due. Its path is that of the request.
FIRST_BYTE = '''
        auth_request /first-byte;
        location = /first-byte {
            internal;
            auth_request off;
            proxy_pass http://first_byte$request_uri;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }'''
#: Since this version HTTP/2 is a directive; before, it was a parameter of `listen`, for which later versions warn.
HTTP2_DIRECTIVE = (1, 25, 1)


class OriginError(TrialError):
    """The origin cannot be set up; str() is the reason."""


class Origin:
    """One nginx, its files and its command line. `directory` is made if missing; prepare() may be called again."""

    def __init__(self, directory, names, *, port=80, tls_port=443, direct_port=None, addresses=ANY, pages_seed=None,
                 first_byte_seed=None):
        """names: for the certificate. addresses: to listen on. direct_port: another port like `port`; None: no such
        port. pages_seed: seed of the web pages; None: it has none. first_byte_seed: of the times to the first byte;
        None: responses begin at once. Raises OriginError."""
        self.directory = os.path.abspath(directory)
        self.names, self.ports, self.addresses = tuple(names), (port, tls_port), tuple(addresses)
        self._pages_seed, self._first_byte_seed = pages_seed, first_byte_seed
        self._plain = [port] if direct_port is None else [port, direct_port]
        if set(self.directory) & set(' \t\n;{}"\'\\$#'):
            raise OriginError(f'{self.directory!r}: a path with blanks, quotes or any of ; {{ }} \\ $ # '
                              'cannot be named to nginx')
        for name in self.names:
            if not HOST.fullmatch(name):
                raise OriginError(f'{name!r} is not a host name')
        if not self.names:
            raise OriginError('no name for the certificate')
        self.binary = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
        if not self.binary:
            raise OriginError('nginx: not found; install nginx')

    @property
    def certificate(self):
        """The file with the certificate, for verification by clients."""
        return f'{self.directory}/tls.crt'

    def argv(self, name='nginx'):
        """The command that serves in the foreground until SIGTERM. name: of its configuration and its pid file."""
        return [self.binary, '-p', self.directory, '-e', f'{self.directory}/error.log',
                '-c', f'{self.directory}/{name}.conf']

    def prepare(self):
        """Writes all files and lets nginx check them. Raises OriginError."""
        for part in ('', '/content', '/tmp'):
            os.makedirs(self.directory + part, mode=0o755, exist_ok=True)
        self._check_reachable()
        for size in grid.sizes():
            path = f'{self.directory}/content/{size}'
            if not os.path.exists(path):
                with open(path, 'wb') as file:
                    file.truncate(size)
        if self._pages_seed is not None:
            pages.Pages(self._pages_seed, self.names).write(f'{self.directory}/content')
        self._make_certificate()
        for name in ('check', 'nginx'):     # a check writes a pid file; that of nginx means that it listens
            with open(f'{self.directory}/{name}.conf', 'w', encoding='utf-8') as file:
                file.write(self._configuration(name))
        _run([*self.argv('check'), '-t', '-q'])

    def _configuration(self, name='nginx'):
        user = f'user {USER} {GROUP};\n' if os.geteuid() == 0 else ''
        listen, listen_tls = [], []
        directive = self._version() >= HTTP2_DIRECTIVE
        word = '' if directive else ' http2'
        for address in self.addresses:
            shown = f'[{address}]' if ':' in address else address
            only = ' ipv6only=on' if ':' in address else ''
            listen += [f'        listen {shown}:{port} backlog=4096{only};' for port in self._plain]
            listen_tls.append(f'        listen {shown}:{self.ports[1]} ssl{word} backlog=4096{only};')
        if directive:
            listen_tls.append('        http2 on;')
        return CONFIGURATION.format(user=user, directory=self.directory, name=name, listen='\n'.join(listen),
                                    listen_tls='\n'.join(listen_tls),
                                    locations=('' if self._first_byte_seed is None else FIRST_BYTE)
                                    + LOCATIONS.replace('DIRECTORY', self.directory))

    def start_first_byte(self):
        """Starts the program that first bytes wait for, which ends with this process; None if they do not wait."""
        if self._first_byte_seed is None:
            return None
        with socket.socket(socket.AF_UNIX) as listener:
            path = f'{self.directory}/first-byte'
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            listener.bind(path)
            os.chmod(path, 0o600)
            if os.geteuid() == 0:
                shutil.chown(path, USER, GROUP)
            listener.listen(4096)
            return subprocess.Popen(
                ['setpriv', '--pdeathsig', 'TERM', sys.executable, '-m', 'fieldtrial.site.first_byte',
                 str(listener.fileno()), str(self._first_byte_seed)], pass_fds=[listener.fileno()], cwd=ROOT,
                stdin=subprocess.DEVNULL)

    def _version(self):
        """The version of nginx, three numbers."""
        said = _run([self.binary, '-v'])
        match = re.search(r'nginx/(\d+)\.(\d+)\.(\d+)', said)
        if not match:
            raise OriginError(f'{self.binary} -v: no version in {said!r}')
        return tuple(map(int, match.groups()))

    def _check_reachable(self):
        path = self.directory
        while os.geteuid() == 0 and path != '/':
            if not os.stat(path).st_mode & 0o001:
                raise OriginError(f'{path}: nginx serves as user {USER}, who may not enter this directory; '
                                  'chmod o+x it or choose another')
            path = os.path.dirname(path)

    def _make_certificate(self):
        """Makes a self-signed certificate; a new one each time, so that the key is worthless after the trial."""
        key = f'{self.directory}/tls.key'
        _run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
              '-days', str(CERTIFICATE_DAYS), '-subj', '/CN=msfrs field trial', '-keyout', key, '-out',
              self.certificate, '-addext', 'subjectAltName=' + ','.join(f'DNS:{name}' for name in self.names)])
        os.chmod(key, 0o600)


def _run(argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OriginError(f'{argv[0]}: {error}') from None
    if done.returncode:
        raise OriginError(f'exit code {done.returncode} from: {" ".join(argv)}\n  {done.stderr.strip()}')
    return done.stdout + done.stderr


def main(argv=None):
    """The program, which executes nginx in the foreground; returns an exit code if it cannot."""
    parser = argparse.ArgumentParser(prog='fieldtrial.site.origin', description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('directory', help='where its files go')
    parser.add_argument('--names', nargs='+', required=True, help='host names')
    parser.add_argument('--addresses', nargs='+', default=ANY, help='listen on these alone (default: on all)')
    parser.add_argument('--direct-port', type=int, help='for HTTP as well, past who intercepts port 80')
    parser.add_argument('--pages', type=int, metavar='SEED', dest='pages_seed', help='serve web pages drawn from this')
    parser.add_argument('--first-byte', type=int, metavar='SEED', dest='first_byte_seed',
                        help='let responses begin after times drawn from this')
    try:
        origin = Origin(**vars(parser.parse_args(argv)))
        origin.prepare()
        origin.start_first_byte()
    except TrialError as error:
        print(f'origin: {error}', file=sys.stderr)
        return 2
    os.execv(origin.binary, origin.argv())


if __name__ == '__main__':
    sys.exit(main())
