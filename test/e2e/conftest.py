# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of all end-to-end tests: hosts in network namespaces, and a small site made of them.

The tests run as root. The namespaces and their processes are always removed at the end, also after SIGINT, SIGTERM and
SIGHUP; those of an earlier run that was killed are removed at the start.
"""
import contextlib
import os
import pathlib
import resource
import signal
import types
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from background import Loop  # noqa: E402 (needs the path above)
from edgetrial.edge_link import EdgeLink  # noqa: E402
from fieldtrial.site.netns import NetnsFabric, sweep, temporary_directory  # noqa: E402
from fieldtrial.site.world import World  # noqa: E402
from ftp_server import ftp_server  # noqa: E402
from gateway import Gateway  # noqa: E402
from http_users import Users  # noqa: E402
from installation import installation  # noqa: E402
from scripted_origin import ScriptedOrigin, make_certificate  # noqa: E402
from site_in_namespaces import Site  # noqa: E402


def pytest_configure(config):
    if os.geteuid():
        raise pytest.UsageError('the end-to-end tests make network namespaces: run them as root')
    config.addinivalue_line('markers', 'sanitized: worth running against a Squid built with the sanitizers as well')
    config.addinivalue_line('markers', 'link(**world): the world of slow_link, see there; at_once=True: its servers '
                                       'respond at once')
    config.addinivalue_line('markers', 'edge_link(**link): the EdgeLink of edge_link')
    # Squid intentionally frees little when it exits, and its Ip::Address frees an addrinfo with a size that differs
    # from that of its allocation. Any other sanitizer report must abort Squid and be visible.
    os.environ.setdefault('ASAN_OPTIONS', 'detect_leaks=0:new_delete_type_mismatch=0:abort_on_error=1')
    os.environ.setdefault('UBSAN_OPTIONS', 'print_stacktrace=1')
    # A thousand users and their servers in one process.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    # A shell without job control makes background processes ignore SIGINT, and their children would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The default action would end the process without cleaning up the fixtures.
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    sweep()


def _interrupt(signum, _frame):
    raise KeyboardInterrupt(f'signal {signum}')


@pytest.fixture
def open_path(tmp_path):
    """tmp_path, readable for daemons that have dropped root privileges, too."""
    for directory in (tmp_path, *tmp_path.parents[:3]):
        directory.chmod(0o755)
    return tmp_path


@pytest.fixture
def fabric():
    """Makes hosts and wires (see fieldtrial.site.netns) that live as long as the test."""
    with NetnsFabric('e2e') as made:
        yield made


@pytest.fixture
def site(fabric):
    """A client, a gateway and a server, IPv4 and IPv6, routed (see site_in_namespaces)."""
    return Site(fabric)


@pytest.fixture
def edge_link(request):
    """A link with a router for msfrs-edge, which is not yet started. The marker `edge_link` has its parameters."""
    marker = request.node.get_closest_marker('edge_link')
    with EdgeLink(**(marker.kwargs if marker else {})) as link:
        yield link


@pytest.fixture(scope='session')
def installed():
    """The Squid under test; an Installation."""
    with installation() as made:
        yield made


@pytest.fixture(scope='session')
def certificates():
    """Files with key and certificate: `origin`, valid for the servers' names; `gateway`, which no client should see."""
    with temporary_directory() as directory:
        files = types.SimpleNamespace(origin=f'{directory}/origin.pem', gateway=f'{directory}/gateway.pem')
        make_certificate(files.origin, *(f's{number:02d}.test' for number in range(1, 10)))
        make_certificate(files.gateway, 'gateway.test', common_name='gateway')
        for path in vars(files).values():
            os.chmod(path, 0o644)       # Squid reads it again after dropping privileges
        yield files


@contextlib.contextmanager
def _slow_link(request, installed, certificates):
    marker = request.node.get_closest_marker('link')
    # A buffer of some 50 kB: at the RTTs of a small site, 1.5 BDP would be three packets.
    wanted = {'rate_bps': 2e6, 'rtts_ms': (10.0, 40.0), 'buffer_bdp': 8, 'users': (2, 2, 2),
              **(marker.kwargs if marker else {})}
    at_once = wanted.pop('at_once', False)
    with World(**wanted) as world, Loop() as loop, contextlib.ExitStack() as stack:
        gateways = [Gateway(there, installed, certificates.gateway) for there in world.at_gateways()]
        link = types.SimpleNamespace(
            loop=loop, world=world, users=stack.enter_context(contextlib.closing(Users(loop, world))),
            origin=ScriptedOrigin(loop, world.farm, certificates.origin, at_once=at_once), certificates=certificates,
            gateway=gateways[0], gateways=gateways,
            of=lambda name: [user for user in world.users if user.cls == name])
        yield link
        for gateway in gateways:
            gateway.end()


@pytest.fixture
def slow_link(request, installed, certificates):
    """A site behind a slow link: users, the patched Squid (not yet started), scriptable servers.

    The marker `link` has the parameters of the world, and `at_once` for tests of orders or times that take servers
    which respond at once; others take their time. In the end Squid must exit cleanly, without errors in its logs.
    """
    with _slow_link(request, installed, certificates) as link:
        yield link


@pytest.fixture
def ftp(slow_link):
    """slow_link with a server for `via='ftp'` as well."""
    with ftp_server(slow_link.world):
        yield slow_link


@pytest.fixture(scope='module')
def common_link(request, installed, certificates):
    """The same, shared by all tests of a module that restore its state; they should use `shared_link`."""
    with _slow_link(request, installed, certificates) as link:
        yield link


@pytest.fixture
def shared_link(common_link):
    """common_link, which must be idle after each test."""
    yield common_link
    common_link.gateway.rest()
    common_link.gateway.check()
