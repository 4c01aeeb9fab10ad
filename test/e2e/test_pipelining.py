# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that send requests without waiting for responses, with pipeline_prefetch. Whatever is held, slow or early,
each body stays with its request, and responses arrive in the order of the requests, each with its own 1xx."""
import contextlib
import socket

import pytest

from background import PATIENCE, content
from fieldtrial.site.addresses import GATEWAY_IN4
from fieldtrial.site.world import FORWARD_PORT
from gateway import NARROW
from scripted_origin import url_path

pytestmark = [pytest.mark.sanitized, pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0,))]
PREFETCH = 'pipeline_prefetch 4'
BOTH = pytest.mark.parametrize('on', (False, True), ids=('off', 'on'))
CHUNKED = 'Transfer-Encoding: chunked'


class Pipeline:
    """A client's connection to Squid: requests may be sent at any time, responses are read in order."""

    def __init__(self, link, user):
        self._link, self._user = link, user
        self._host = link.world.servers[0].v4
        self._socket = self._file = None

    def request(self, key, *headers, method='GET', body=0, **script):
        """The bytes of a request. body: bytes; in chunks of 3000 if the headers say so."""
        if body and CHUNKED not in headers:
            headers += (f'Content-Length: {body}',)
        head = [f'{method} http://{self._host}{url_path(key, **script)} HTTP/1.1', f'Host: {self._host}', *headers]
        return '\r\n'.join([*head, '', '']).encode() + _framed(content(key, 0, body), CHUNKED in headers)

    def connect(self, port=80):
        return f'CONNECT {self._host}:{port} HTTP/1.1\r\nHost: {self._host}:{port}\r\n\r\n'.encode()

    def send(self, *requests):
        if not self._socket:
            self._socket = self._link.world.users_host.socket(
                socket.AF_INET, socket.SOCK_STREAM, source=self._user.v4, peer=(GATEWAY_IN4, FORWARD_PORT),
                timeout=PATIENCE)
            self._file = self._socket.makefile('rb')
        self._socket.sendall(b''.join(requests))

    def answer(self, key=None, size=1000):
        """The status of the next response, whose body must be that of the key; without a key it must have none."""
        status = int(self._file.readline().split()[1])
        headers = {}
        while (line := self._file.readline()) not in (b'\r\n', b''):
            name, _, value = line.decode('latin-1').partition(':')
            headers[name.lower()] = value.strip()
        length = int(headers.get('content-length', 0))
        if key is None:
            assert not length, headers
        else:
            body = self._file.read(length)
            assert status != 200 or (length, body) == (size, content(key, 0, size))
        return status

    def rest(self):
        """All bytes until the end of the connection."""
        return self._file.read()

    def close(self):
        if self._socket:
            self._file.close()
            self._socket.close()


def _framed(body, chunked):
    if not chunked:
        return body
    pieces = [body[at:at + 3000] for at in range(0, len(body), 3000)]
    return b''.join(b'%x\r\n%b\r\n' % (len(piece), piece) for piece in [*pieces, b''])


@pytest.fixture
def pipeline(slow_link):
    with contextlib.closing(Pipeline(slow_link, slow_link.of('gold')[0])) as made:
        yield made


def upload(link, pipeline):
    """A POST, a GET and a PUT in chunks, all at once."""
    pipeline.send(pipeline.request('post', method='POST', body=30_000), pipeline.request('get'),
                  pipeline.request('put', CHUNKED, method='PUT', body=9000))
    link.gateway.wait_until(lambda: '/put' in link.gateway.page('active_requests'), 'Squid has read all three')


def check_upload(link, pipeline, *others):
    """others: keys of further requests that the server has seen."""
    assert [pipeline.answer(key) for key in ('post', 'get', 'put')] == [200, 200, 200]
    bodies = {seen.key: seen.body for seen in link.origin.seen}
    assert bodies['post'] == content('post', 0, 30_000)
    assert bodies['get'] == b''
    assert bodies['put'] == content('put', 0, 9000)
    assert sorted(link.origin.keys()) == sorted(['post', 'get', 'put', *others]), 'no piece of a body is a request'


def test_the_length_of_a_body_while_a_server_is_slow_to_connect(slow_link, pipeline):
    """As in unmodified Squid: the POST is not yet sent when the PUT after it has been read."""
    slow_link.gateway.start(PREFETCH, on=False)
    # Squid retries to connect after a second.
    rule = ('INPUT', '-p', 'tcp', '--dport', '80', '--syn', '-j', 'DROP')
    slow_link.world.farm.run('iptables', '-I', *rule)
    upload(slow_link, pipeline)
    slow_link.world.farm.run('iptables', '-D', *rule)
    check_upload(slow_link, pipeline)


def test_the_length_of_a_body_while_requests_are_held(slow_link, pipeline):
    gateway = slow_link.gateway.start(PREFETCH, NARROW)
    blocker = slow_link.users.get(slow_link.of('silver')[0], gate='open')
    gateway.wait_until(lambda: blocker.key in slow_link.origin.keys(), 'the blocker is served')
    upload(slow_link, pipeline)
    gateway.wait_for(queued=3, in_flight=1)
    slow_link.origin.open_gate('open')
    assert blocker.wait().good
    check_upload(slow_link, pipeline, blocker.key)
    gateway.rest()


@BOTH
def test_early_hints(slow_link, pipeline, on):
    """They precede the response that they belong to, however early the servers send them."""
    slow_link.gateway.start(PREFETCH, on=on)
    pipeline.send(pipeline.request('a', gate='open'), pipeline.request('b', hints=2), pipeline.request('c', hints=1),
                  pipeline.request('d'))
    slow_link.gateway.wait_until(lambda: set('abcd') <= set(slow_link.origin.keys()), 'all have gone out')
    slow_link.origin.open_gate('open')
    assert [pipeline.answer('a'), *(pipeline.answer() for _ in range(2)), pipeline.answer('b'), pipeline.answer(),
            pipeline.answer('c'), pipeline.answer('d')] == [200, 103, 103, 200, 103, 200, 200]


@BOTH
@pytest.mark.parametrize('forced', (False, True), ids=('server', 'squid'))
def test_a_body_that_waits_for_100_continue(slow_link, pipeline, on, forced):
    gateway = slow_link.gateway.start(PREFETCH, *['force_request_body_continuation allow all'][:forced], on=on)
    expect = pipeline.request('b', 'Expect: 100-continue', method='POST', body=3000)
    end = expect.index(b'\r\n\r\n') + 4
    pipeline.send(pipeline.request('a', gate='open'), expect[:end])
    gateway.wait_until(lambda: '/b?' in gateway.page('active_requests'), 'Squid has read both')
    slow_link.origin.open_gate('open')
    assert [pipeline.answer('a'), pipeline.answer()] == [200, 100]
    pipeline.send(expect[end:], pipeline.request('c'))
    assert [pipeline.answer('b'), pipeline.answer('c')] == [200, 200]
    assert {seen.key: seen.body for seen in slow_link.origin.seen}['b'] == content('b', 0, 3000)


def test_a_body_that_does_not_wait_for_a_forced_100_continue(slow_link, pipeline):
    """It must not be parsed as requests."""
    slow_link.gateway.start(PREFETCH, 'force_request_body_continuation allow all', on=False)
    inner = pipeline.request('smuggled')
    pipeline.send(pipeline.request('a', 'Expect: 100-continue', f'Content-Length: {len(inner)}', method='POST'), inner,
                  pipeline.request('b'))
    assert [pipeline.answer(), pipeline.answer('a'), pipeline.answer('b')] == [100, 200, 200]
    assert slow_link.origin.keys() == ['a', 'b']


@BOTH
def test_a_tunnel_begins_when_all_before_it_are_answered(slow_link, pipeline, on):
    gateway = slow_link.gateway.start(PREFETCH, on=on)
    pipeline.send(pipeline.request('a', gate='open'), pipeline.request('b'), pipeline.connect())
    gateway.wait_until(lambda: ':80' in gateway.page('active_requests'), 'Squid has read the CONNECT')
    slow_link.origin.open_gate('open')
    assert [pipeline.answer('a'), pipeline.answer('b'), pipeline.answer()] == [200, 200, 200]
    pipeline.send(b'GET /inside?then=close HTTP/1.1\r\nHost: inside\r\n\r\n')
    assert pipeline.rest().endswith(content('inside', 0, 1000))


@BOTH
def test_a_tunnel_that_is_refused_behind_others(slow_link, pipeline, on):
    gateway = slow_link.gateway
    gateway.early = ('acl tunnels method CONNECT', 'http_access deny tunnels')
    gateway.start(PREFETCH, on=on)
    pipeline.send(pipeline.request('a', gate='open'), pipeline.connect(), pipeline.request('b'))
    gateway.wait_until(lambda: ':80' in gateway.page('active_requests'), 'Squid has read the CONNECT')
    slow_link.origin.open_gate('open')
    assert [pipeline.answer('a'), pipeline.answer('error')] == [200, 403]


@BOTH
def test_a_protocol_is_changed_when_all_before_it_are_answered(slow_link, pipeline, on):
    gateway = slow_link.gateway.start(PREFETCH, 'http_upgrade_request_protocols e2e allow all', on=on)
    pipeline.send(pipeline.request('a', gate='open'),
                  pipeline.request('b', 'Connection: Upgrade', 'Upgrade: e2e/1', framing='upgrade', size=50_000))
    gateway.wait_until(lambda: 'b' in slow_link.origin.keys(), 'both have gone out')
    slow_link.origin.open_gate('open')
    assert [pipeline.answer('a'), pipeline.answer()] == [200, 101]
    assert pipeline.rest() == content('b', 0, 50_000)


def test_an_earlier_request_that_is_refused_late(slow_link, pipeline):
    """Nothing is read after a request with an error, whatever happens to the earlier ones."""
    gateway = slow_link.gateway
    gate, helper = gateway.directory / 'gate', gateway.directory / 'helper.sh'
    helper.write_text(f'while read -r line; do until [ -e {gate} ]; do sleep 0.05; done; echo OK; done\n')
    gateway.early = (f'external_acl_type late children-max=1 ttl=0 %DST /bin/sh {helper}', 'acl late external late',
                     'acl first urlpath_regex ^/a', 'http_access deny first late')
    gateway.start(PREFETCH, on=False)
    pipeline.send(pipeline.request('a'), pipeline.request('b', 'Transfer-Encoding: strange', method='POST'),
                  pipeline.request('c'))
    gateway.wait_until(lambda: '/b?' in gateway.page('active_requests'), 'Squid has read the bad one')
    gate.touch()
    assert [pipeline.answer('error'), pipeline.answer('error')] == [403, 501]
    assert not pipeline.rest()
    urls = [row['url'] for row in gateway.access_log(3)]
    assert [url.rpartition('/')[2][:2] for url in urls[:2]] == ['a?', 'b?']
    assert urls[2:] == ['error:transaction-end-before-headers'], 'what followed was not parsed'
