# SPDX-License-Identifier: GPL-2.0-or-later
"""Users whose resolver is not the gateway's, or who send other ClientHellos: HTTPS passes without a look-up."""
import contextlib
import http.client
import random
import signal
import socket
import ssl
import struct
import subprocess
import threading
import zlib

import pytest

from fieldtrial.load import client_hellos
from background import wait_until
from iptables_script import MODES, up
from resolver import NXDOMAIN, SERVFAIL, SILENT, Resolver
from site_in_namespaces import AF, CLIENT, PATIENCE, SERVER, connection, sh
from test_transparent_squid import BODY, EXAMPLE, NAME, gateway, origin  # noqa: F401  (fixtures)

#: A name that only users can resolve; the class of `updates` in the example contains it.
INNER = 'printer.corp.test'
#: An address of the test networks that nobody has.
ELSEWHERE = {4: '198.18.2.77', 6: '2001:2:0:2::77'}


@pytest.fixture
def names(gateway):
    """The gateway's resolver, which knows no name."""
    with Resolver().on(gateway.host) as resolver:
        yield resolver


def receipt(received):
    """A TLS record with the length of what was received so far and its CRC."""
    return client_hellos.records(struct.pack('>II', len(received), zlib.crc32(received)))


@pytest.fixture
def counting(site):
    """Servers on port 443 that answer whatever they receive with its receipt."""
    def serve(listening):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    def answer(stream):
        received = b''
        with stream, contextlib.suppress(OSError):
            while piece := stream.recv(65536):
                received += piece
                stream.sendall(receipt(received))

    with contextlib.ExitStack() as stack:
        for family in (4, 6):
            with site.server.inside():
                listening = stack.enter_context(socket.create_server((SERVER[family], 443), family=AF[family]))
            threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield


def arrives(site, hello, family):
    """Sends a Hello to the server; whether all of it arrives there, and the answer comes back. Before each piece but
    the first, Squid has read the one before."""
    with connection(site.client, family, SERVER[family], 443) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in hello.pieces:
            if piece is not hello.pieces[0]:
                wait_until(lambda: all_read(site.client, 'Send-Q') and all_read(site.gateway, 'Recv-Q'), 'read')
            stream.sendall(piece)
        said, wanted = b'', receipt(hello.bytes)
        with contextlib.suppress(ConnectionError):
            while (more := stream.recv(4096)) and wanted[:5].startswith((said + more)[:5]):   # else Squid answers
                said += more
                if said.endswith(wanted):
                    return True
        return False


def all_read(host, queue):
    """Whether the queues of all TCP connections of a host are empty."""
    column = ('Recv-Q', 'Send-Q').index(queue)
    lines = sh(host, 'ss', '-Htn', 'state', 'established').stdout.splitlines()
    return all(line.split()[column] == '0' for line in lines)


def every_kind(site):
    """{(family, kind): whether it arrives}."""
    return {(family, kind): arrives(site, make(INNER, random.Random(f'{family} {kind}')), family)
            for family in (4, 6) for kind, make in client_hellos.KINDS.items()}


@contextlib.contextmanager
def running(gateway, *options):
    """Squid, and connections led to it. Ends it again, so that it can start with another configuration."""
    gateway.start()
    up(gateway.host, *options)
    yield
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.process.wait(3 * PATIENCE) == 0


def configured(gateway, *lines, **replaced):
    """The example with INNER in the class of updates, and more lines before all others."""
    text = EXAMPLE.replace('.deb.debian.org', f'.{INNER.partition(".")[2]}')
    for old, new in replaced.values():
        assert old in text
        text = text.replace(old, new)
    gateway.write('\n'.join((*lines, text)))


@pytest.mark.parametrize('mode', MODES)
def test_every_client_hello_arrives_and_no_name_is_resolved(site, gateway, names, counting, mode):
    direct = every_kind(site)
    assert all(direct.values())
    configured(gateway)
    with running(gateway, '--mode', mode):
        assert every_kind(site) == direct
    assert names.asked == []
    lines = [line for line in gateway.logged(2 * len(direct)) if line['result'].startswith('TCP_TUNNEL')]
    assert [line['result'] for line in lines] == ['TCP_TUNNEL/200'] * len(direct)
    # Squid compares names as they are sent; RFC 6066 has them without a final dot.
    classes = {'final-dot': 'gold', 'ipv4-literal': 'gold', 'ipv6-literal': 'gold', 'no-name': 'gold'}
    assert sorted((line['sni'], line['from'], line['class']) for line in lines) == sorted(
        (client_hellos.KINDS[kind](INNER, random.Random(1)).name or '-', f'ORIGINAL_DST/{SERVER[family]}',
         classes.get(kind, 'bronze')) for family, kind in direct)


def test_whatever_the_gateways_resolver_says(site, gateway, names, counting):
    """Other addresses, addresses that rotate, no such name, failures, and silence."""
    configured(gateway)
    gateway.start()
    up(gateway.host)
    answers = ([ELSEWHERE[4], ELSEWHERE[6]], *([f'198.18.2.{n}'] for n in range(10, 20)), NXDOMAIN, SERVFAIL, SILENT)
    for number, names.answer in enumerate(answers):
        hello = client_hellos.KINDS['ech'](f'n{number}.{INNER}', random.Random(number))
        assert [arrives(site, hello, family) for family in (4, 6)] == [True, True], names.answer
    assert names.asked == []
    # The resolver is Squid's: it resolves the names of plain HTTP.
    names.answer = [SERVER[4], SERVER[6]]
    assert ask(site, INNER)[0] == 503, 'nobody listens on port 80'
    assert set(names.asked) == {INNER}


def ask(site, host, port=80, wrap=lambda stream: stream):
    """(status, body) of a GET with that Host on a connection to the IPv4 server."""
    with connection(site.client, 4, SERVER[4], port) as plain, wrap(plain) as stream:
        client = http.client.HTTPConnection(host)
        client.sock = stream
        client.request('GET', '/', headers={'Connection': 'close'})
        answer = client.getresponse()
        return answer.status, answer.read()


def test_plain_http_is_verified(site, gateway, names, origin):
    """A false name is resolved; it does not decide the destination, or is refused where that is wanted."""
    names.answer = [ELSEWHERE[4], ELSEWHERE[6]]
    for strict, status in (('off', 200), ('on', 409)):
        configured(gateway, f'host_verify_strict {strict}', 'client_dst_passthru off')
        del names.asked[:]
        with running(gateway):
            assert ask(site, INNER)[0] == status
            assert ask(site, NAME[4]) == (200, BODY)
        assert set(names.asked) == {INNER}
    assert [line['from'].partition('/')[0] for line in gateway.logged(4)] == [
        'ORIGINAL_DST', 'HIER_DIRECT', 'HIER_NONE', 'HIER_DIRECT']


def test_plain_http_does_not_wait_for_silent_name_servers(site, gateway, names, origin):
    """The client has resolved the name: its requests go where it wants them, and their responses are not stored for
    others. Once the name servers answer, names are verified."""
    names.answer = SILENT
    configured(gateway, 'dns_timeout 10 minutes', 'client_dst_passthru off')
    with running(gateway):
        assert [ask(site, INNER) for _ in range(2)] == 2 * [(200, BODY)]
        assert INNER in names.asked
        names.answer = [SERVER[4], SERVER[6]]
        assert ask(site, f'other.{INNER}') == (200, BODY)
    assert [line['from'].partition('/')[0] for line in gateway.logged(3)] == 2 * ['ORIGINAL_DST'] + ['HIER_DIRECT']


def test_a_false_name_in_a_bumped_connection_is_refused(site, gateway, names, origin):
    """Decrypted requests are verified by their Host headers, as if they were plain. The name of the ClientHello is
    still not resolved."""
    names.answer = [ELSEWHERE[4], ELSEWHERE[6]]
    generator = gateway.installation.certificate_generator
    if not generator.exists():
        pytest.skip(f'{generator} is not there: this Squid was built without it, or has been moved')
    store = gateway.directory / 'certificates'
    subprocess.run([generator, '-c', '-s', store, '-M', '4MB'], check=True, capture_output=True)
    subprocess.run(['chown', '-R', 'proxy:proxy', store], check=True)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def wrap(stream):
        return context.wrap_socket(stream, server_hostname=f'sni.{INNER}')
    for strict, status in (('off', 200), ('on', 409)):
        configured(gateway, f'host_verify_strict {strict}', f'sslcrtd_program {generator} -s {store} -M 4MB',
                   'sslproxy_cert_error allow all',
                   generate=('generate-host-certificates=off', 'generate-host-certificates=on'),
                   bump=('ssl_bump splice all', 'ssl_bump bump all'))
        del names.asked[:]
        with running(gateway):
            assert ask(site, INNER, 443, wrap)[0] == status
            assert ask(site, NAME[4], 443, wrap) == (200, BODY)
        assert set(names.asked) == {INNER}


def test_strict_verification_refuses_a_false_name_of_a_tunnel(site, gateway, names, counting):
    names.answer = [ELSEWHERE[4], ELSEWHERE[6]]
    configured(gateway, 'host_verify_strict on')
    gateway.start()
    up(gateway.host)
    assert not arrives(site, client_hellos.KINDS['tls1.3'](INNER, random.Random(1)), 4)
    assert set(names.asked) == {INNER}


def test_an_access_rule_by_address_sees_where_a_tunnel_goes(site, gateway, names, counting):
    """Not where its name would lead, also if Squid may choose among a name's addresses."""
    names.answer = [ELSEWHERE[4], ELSEWHERE[6]]
    configured(gateway, 'client_dst_passthru off', f'acl closed dst {SERVER[4]}', 'http_access deny closed')
    gateway.start()
    up(gateway.host)
    hello = client_hellos.KINDS['tls1.3'](INNER, random.Random(1))
    assert [arrives(site, hello, family) for family in (4, 6)] == [False, True]
    assert names.asked == []


def test_a_name_cannot_forge_a_line_of_the_log(site, gateway, names, counting):
    """A client may put any bytes into its ClientHello."""
    configured(gateway)
    with running(gateway):
        hello = client_hellos.client_hello('a b\n1.000 1 198.18.1.9 TCP_TUNNEL/200', random.Random(1))
        assert arrives(site, client_hellos.Hello((client_hellos.records(hello),), ''), 4)
    for line in gateway.logged(2):
        assert (line['client'], line['sni']) == (CLIENT[4], 'a%20b%0A1.000%201%20198.18.1.9%20TCP_TUNNEL/200')
