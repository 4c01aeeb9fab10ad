# SPDX-License-Identifier: GPL-2.0-or-later
"""An origin on loopback, for tests."""
import contextlib
import os
import socket
import subprocess
import tempfile

from fieldtrial.site.origin import Origin


def free_ports(count):
    """TCP ports that are free now, for IPv4 and for IPv6."""
    held = [socket.create_server(('::', 0), family=socket.AF_INET6, dualstack_ipv6=True) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


def _answers(address, port):
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=60):
        return True
    return False


@contextlib.contextmanager
def serving(**how):
    """A running Origin, made with `how`, for the names localhost and s01.test on two free ports of loopback."""
    with tempfile.TemporaryDirectory(prefix='msfrs-origin-') as directory:
        os.chmod(directory, 0o755)     # the server runs as another user
        port, tls_port = free_ports(2)
        made = Origin(f'{directory}/o', ['localhost', 's01.test'], port=port, tls_port=tls_port,
                      addresses=('127.0.0.1', '::1'), **how)
        made.prepare()
        waiting = made.start_first_byte() or contextlib.nullcontext()
        with waiting, subprocess.Popen(made.argv(), stdin=subprocess.DEVNULL) as nginx:
            try:
                while not all(_answers(address, port) for address in made.addresses for port in made.ports):
                    assert nginx.poll() is None, 'nginx ended; its error.log says why'
                yield made
            finally:
                nginx.terminate()
                if how:
                    waiting.terminate()
