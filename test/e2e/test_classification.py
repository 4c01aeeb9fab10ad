# SPDX-License-Identifier: GPL-2.0-or-later
"""The class and the user of a request, as logged in access.log."""
import base64
import http.client
import ipaddress

import pytest

from background import PATIENCE
from fieldtrial.site import addresses
from fieldtrial.site.world import FORWARD_PORT

CLASSES = ('msfrs on', 'msfrs_link rate=100Mbit', 'msfrs_class first weight=1', 'msfrs_class second weight=1',
           'msfrs_class rest weight=1 default')
#: Every path on which the client's own address can be used.
WAYS = [('proxy', 4), ('proxy', 6), ('intercept', 4), ('intercept', 6), ('connect', 4), ('tls', 4), ('tls', 6)]


def party(link, *args, **how):
    """(class, user) of such a request, from access.log."""
    def rows():     # an intercepted TLS connection has an additional line for the time before it was spliced
        return [row for row in link.gateway.access_log() if not row['tag'].startswith('NONE')]
    before = len(rows())
    assert link.users.get(*args, **how).wait().good
    link.gateway.wait_until(lambda: len(rows()) > before, rows)
    row = rows()[-1]
    return row['class'], row['user']


def network_of(user):
    """msfrs's default name of an IPv6 user."""
    return str(ipaddress.ip_network((user.v6, 64), strict=False))


def start(link, *lines):
    """Squid with CLASSES and these directives; the users' ports 80 and 443 are redirected to it."""
    link.gateway.start(*CLASSES, *lines, on=False).intercept_tls()
    return link.of('gold') + link.of('silver') + link.of('bronze')


@pytest.mark.parametrize('via, family', WAYS)
def test_a_user_is_an_address(slow_link, via, family):
    one, two, *_ = start(slow_link, 'msfrs_access first allow gold')
    for user in (one, two):
        assert party(slow_link, user, via=via, family=family) == ('first', user.v4 if family == 4 else network_of(user))


def test_a_user_is_a_network(slow_link):
    one, two, *_ = start(slow_link, 'msfrs_user src6/52')
    for user in (one, two):
        assert party(slow_link, user, family=6) == ('rest', '2001:2:0:1000::/52')
        assert party(slow_link, user, family=4) == ('rest', user.v4)


def test_a_user_is_a_single_address_of_ipv6(slow_link):
    one, *_ = start(slow_link, 'msfrs_user src6/128')
    assert party(slow_link, one, family=6) == ('rest', one.v6)


def test_the_first_line_that_matches_decides(slow_link):
    _, _, silver, _, bronze, other = start(
        slow_link, f'acl one src {slow_link.of("silver")[1].v4}', f'acl two src {slow_link.of("bronze")[0].v4}',
        'msfrs_access first deny one', 'msfrs_access second allow one', 'msfrs_access second deny two !all',
        'msfrs_access first allow silver', 'msfrs_access second deny two', 'msfrs_access second allow bronze',
        'msfrs_access first deny all', 'msfrs_access first allow all')
    expected = {slow_link.of('silver')[1]: 'second',    # excluded from first, then included in second
                silver: 'first',
                bronze: 'rest',                         # excluded from second, and "deny all" matches everybody
                other: 'second',
                slow_link.of('gold')[0]: 'rest'}
    for user, name in expected.items():
        assert party(slow_link, user) == (name, user.v4)


def helper(link, name, answer):
    """A program that gives the same answer to every line of Squid's; the command that runs it."""
    path = link.gateway.directory / name
    path.write_text(f'#!/bin/sh\nwhile read -r line; do echo "{answer}"; done\n')
    path.chmod(0o755)
    return path


def get_with_name(link, user, name):
    """A request through the proxy with an HTTP user name, text or bytes."""
    with link.world.users_host.inside():
        connection = http.client.HTTPConnection(addresses.GATEWAY_IN4, FORWARD_PORT, timeout=PATIENCE,
                                                source_address=(user.v4, 0))
        connection.connect()
    name = name.encode() if isinstance(name, str) else name
    credentials = base64.b64encode(name + b':secret').decode()
    connection.request('GET', f'http://{link.world.servers[0].v4}/named?size=1000',
                       headers={'Proxy-Authorization': f'Basic {credentials}'})
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_user_is_a_login(slow_link):
    """The name from proxy_auth; otherwise the one from an external ACL, which also works for intercepted requests;
    otherwise the address."""
    gold, silver, bronze = (slow_link.of(name)[0] for name in ('gold', 'silver', 'bronze'))
    start(slow_link, 'msfrs_user login', f'auth_param basic program {helper(slow_link, "basic", "OK")}',
          f'external_acl_type session %>a {helper(slow_link, "session", "OK user=by-session")}',
          'acl named proxy_auth REQUIRED', 'acl known external session',
          # evaluated after http_access, and before a request is forwarded
          'adapted_http_access allow gold named', 'adapted_http_access allow silver known',
          'adapted_http_access allow all')
    assert get_with_name(slow_link, gold, 'alice') == 200
    assert get_with_name(slow_link, slow_link.of('gold')[1], 'alice') == 200
    assert slow_link.users.get(silver, via='intercept').wait().good
    assert slow_link.users.get(bronze).wait().good
    rows = slow_link.gateway.access_log(4)
    assert [row['user'] for row in rows] == ['login=alice', 'login=alice', 'login=by-session', bronze.v4]


def test_the_report_has_logins_as_they_are(slow_link):
    """In UTF-8. Characters that YAML does not allow are escaped; invalid UTF-8 is replaced, byte by byte."""
    start(slow_link, 'msfrs_user login', f'auth_param basic program {helper(slow_link, "basic", "OK")}',
          'acl named proxy_auth REQUIRED', 'adapted_http_access allow localhost',
          'adapted_http_access allow named')
    names = {'j\u00fcrgen': None, '\u5f20\u4f1f': None, '\U0001f600 "\\"': None,
             'a\tb\x7f\u0085\u2028\ufeff\ufffe': None,
             b'j\xfcrgen': 'j\ufffdrgen', b'\xc0\x80\xed\xa0\x80\xf5': 6 * '\ufffd',
             'x' + 200 * '\u00fc': 'x' + 60 * '\u00fc' + '\ufffd'}
    for name in names:
        assert get_with_name(slow_link, slow_link.of('gold')[0], name) == 200
    wanted = {f'login={seen or name}' for name, seen in names.items()}
    assert {row['user'] for row in slow_link.gateway.report()['top_users']} == wanted
    text = slow_link.gateway.page('msfrs')
    assert 'user: "login=j\u00fcrgen"' in text and 'user: "login=\u5f20\u4f1f"' in text


def test_a_user_is_a_hardware_address(slow_link):
    one, two, three, *_ = start(slow_link, 'msfrs_user mac')
    home = slow_link.world.users_host
    mac = home.run('cat', '/sys/class/net/home0/address').strip()
    for user in (one, two):     # addresses of one machine
        for via in ('proxy', 'intercept'):
            for family in (4, 6):
                assert party(slow_link, user, via=via, family=family) == ('rest', f'mac={mac}')
    # As behind a router: the gateway sends to its hardware address, not to one of this address.
    slow_link.world.gateway.run('ip', '-6', 'route', 'add', three.v6, 'via', one.v6, 'dev', 'lan0')
    assert party(slow_link, three, family=6) == ('rest', three.v6)
    assert party(slow_link, three, family=4) == ('rest', f'mac={mac}')


def test_a_user_becomes_a_hardware_address(slow_link):
    one, *_ = start(slow_link)
    assert party(slow_link, one) == ('rest', one.v4)
    for rule, user in (('mac', f'mac={slow_link.world.users_host.run("cat", "/sys/class/net/home0/address").strip()}'),
                       ('src', one.v4)):
        slow_link.gateway.reconfigure(*CLASSES, f'msfrs_user {rule}', on=False)
        assert party(slow_link, one) == ('rest', user)
