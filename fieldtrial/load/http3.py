# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/3 at the servers: Caddy next to nginx, which serves TCP. It serves the same files under the same paths.

Caddy always binds the TCP port with the number of its UDP port, and nginx has 443. So Caddy uses another port, and
traffic to UDP port 443 is redirected there.
"""
import importlib.util
import json
import shutil

from ..base.errors import TrialError
from ..base.paths import MODULES
from ..site.processes import listens

PORT, OWN_PORT = 443, 4443
PATH = '/usr/local/bin:/usr/bin:/bin'
#: User and group that it runs as, with access to its own files only.
USER, GROUP = 'nobody', 'nogroup'
OBJECT = {'path_regexp': {'name': 'object', 'pattern': '^/b/([0-9]+)/'}}


def missing():
    """As text, the prerequisites of HTTP/3 that this machine lacks; empty if it has all."""
    absent = [] if shutil.which('caddy', path=PATH) else ['caddy not found (Debian: caddy)']
    if not (MODULES / 'aioquic').is_dir() and not importlib.util.find_spec('aioquic'):
        absent.append('python3 has no module aioquic (Debian 13: python3-aioquic, else PyPI)')
    return ' and '.join(absent)


def configuration(directory, content, first_byte=None):
    """Caddy's configuration as JSON. directory: holds its certificate and key. content: holds a file for each size.
    first_byte: the socket of site.first_byte; None: responses begin at once."""
    # Without any route the answer would be that of first_byte; with one the request goes on to the next handler.
    wait = [{'handler': 'reverse_proxy', 'upstreams': [{'dial': f'unix/{first_byte}'}],
             'handle_response': [{'match': {'status_code': [2]}, 'routes': [{'handle': [{'handler': 'headers'}]}]}]}
            ] if first_byte else []
    return {
        'admin': {'disabled': True, 'config': {'persist': False}},
        'logging': {'logs': {'default': {'level': 'WARN'}}},
        'storage': {'module': 'file_system', 'root': f'{directory}/storage'},
        'apps': {
            'tls': {'certificates': {'load_files': [
                {'certificate': f'{directory}/tls.crt', 'key': f'{directory}/tls.key'}]}},
            'http': {'https_port': OWN_PORT, 'servers': {'origin': {
                'listen': [f':{OWN_PORT}'], 'tls_connection_policies': [{}], 'automatic_https': {'disable': True},
                'routes': [{'match': [OBJECT], 'handle': [
                    *wait,
                    {'handler': 'headers', 'response': {'set': {'Cache-Control': ['no-store']}}},
                    {'handler': 'rewrite', 'uri': '/{http.regexp.object.1}'},
                    {'handler': 'file_server', 'root': str(content)}]}]}}}}}


def start_servers(world):
    """Starts one on each host of servers, with the files and certificate of a started origin. Daemons of the world.
    Raises TrialError."""
    if missing():
        raise TrialError(f'HTTP/3: {missing()}')
    daemons = []
    for host in world.farms:
        origin, directory = world.directory / f'origin-{host.role}', world.directory / f'caddy-{host.role}'
        host.run('install', '-d', '-o', USER, '-g', GROUP, '-m', '700', directory)
        for name in ('tls.crt', 'tls.key'):
            host.run('install', '-o', USER, '-g', GROUP, '-m', '400', origin / name, directory / name)
        path = world.directory / f'caddy-{host.role}.json'
        first_byte = origin / 'first-byte'
        path.write_text(json.dumps(configuration(directory, origin / 'content', first_byte.exists() and first_byte),
                                   indent=1) + '\n')
        redirect(host)
        daemon = world.start(host, [
            'setpriv', '--reuid', USER, '--regid', GROUP, '--clear-groups', '--no-new-privs',
            'env', f'HOME={directory}', shutil.which('caddy', path=PATH), 'run', '--config', str(path)],
            f'caddy-{host.role}.log', command='caddy')
        daemon.wait_until(lambda host=host: listens(host, OWN_PORT), f'listening on port {OWN_PORT}')
        daemons.append(daemon)
    return daemons


def redirect(host):
    for iptables in ('iptables', 'ip6tables'):
        host.run(iptables, '-t', 'nat', '-A', 'PREROUTING', '-p', 'udp', '--dport', str(PORT), '-j', 'REDIRECT',
                 '--to-ports', str(OWN_PORT))
