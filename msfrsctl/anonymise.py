# SPDX-License-Identifier: GPL-2.0-or-later
"""Replaces addresses and names in texts; the same original always gets the same stand-in.

Addresses are replaced by reserved addresses (`standins`), which preserve networks and their members. Names keep the
number of labels that they have in common.
"""
import hashlib
import hmac
import ipaddress
import itertools
import re
import secrets

from .standins import StandIns

#: Alternatives in order of precedence; the first that matches takes the text.
TOKENS = re.compile(r'''
    (?P<url>\b[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/@"']*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/:?"']+)(?P<port>:\d+)?
        (?P<rest>[/?][^\s"']*)?) |
    (?P<path>(?<![\w/.])/[\w.@+-]+(?:/[\w.@+*-]+)+/?) |
    (?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+) |
    (?P<mac>(?<![\w:])[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}(?![\w:])) |
    (?P<v6>(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,8}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4})(?:/\d{1,3})?(?![\w:])) |
    (?P<v4>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?!\w|\.\d)) |
    (?P<name>(?<![\w-])\.?[A-Za-z0-9_](?:[\w-]*\.)+[A-Za-z][\w-]*[A-Za-z])''', re.VERBOSE)
#: File name extensions, none of which is a top-level domain.
FILES = ('conf', 'log', 'pem', 'pid', 'sock', 'service', 'timer', 'documented', 'html', 'json', 'yaml', 'txt',
         'default')
HOME = re.compile(r'^/home/[^/]+')
#: Prefixes of paths in the file system, as opposed to paths of a URL.
SYSTEM = re.compile(r'/(etc|usr|opt|var|run|proc|sys|dev|tmp|home|root|srv|lib\w*|s?bin)/')
#: Directives whose values are secrets, names, or patterns of users' activity.
SECRET = re.compile(r'^(\s*(?:cachemgr_passwd|auth_param|external_acl_type|cache_mgr|visible_hostname|unique_hostname|'
                    r'hostname_aliases|append_domain|sslpassword_program|acl\s+\S+\s+(?:\w*_regex|browser|'
                    r'referer_regex|proxy_auth|ident|ext_user|snmp_community|user_cert|ca_cert|note|req_header|'
                    r'rep_header))\s+)(.*)$',
                    re.MULTILINE)
LOGIN = re.compile(r'\b((?:login|password|community)=)\S+')
#: Users named in reports of Squid and in cache.log, whatever the name looks like: `user: "NAME"`, `of user NAME`.
USER = re.compile(r'(?P<before>(?<![\w-])(?:user: "|of user ))(?P<user>(?<=")(?:[^"\\]|\\.)+|(?<!")\S+?(?=:?(?:\s|$)))')
#: Fewest digits of a number that is taken for a user; shorter numbers have other meanings, too.
DIGITS = 6


def distinctive(name):
    """Whether a name is replaced wherever it occurs. Short words and numbers would match everywhere; addresses and
    domains are recognised by their form."""
    return len(name) > 2 and not (name.isdigit() and len(name) < DIGITS) and name != 'localhost' \
        and not TOKENS.fullmatch(name)


class Anonymiser:
    """words: further names (logins, this machine's name), replaced wherever they stand alone if they are
    distinctive(). texts: all texts to be made anonymous, so that their networks are known from the beginning."""

    def __init__(self, words=(), key=None, texts=()):
        self._key = key or secrets.token_bytes(32)
        self._labels, self._users, self._mails, self._addresses = {}, {}, {}, {}
        self._numbers, self._words = itertools.count(1), None
        self._stand_ins = StandIns((match['v6'] or match['v4'] or (match['host'] or '').strip('[]')
                                    for text in texts for match in TOKENS.finditer(text)), self._key)
        self._known = set(filter(distinctive, words))
        if self._known:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._words = re.compile(r'(?<![\w.@-])(?:' + '|'.join(map(re.escape, longest_first))
                                     + r')(?![\w@-]|\.\w)')

    def text(self, text):
        """The text without addresses and names."""
        text = USER.sub(lambda match: match['before'] + self.login(match['user']), text)
        text = TOKENS.sub(self._token, text)
        return self._words.sub(lambda match: self._user(match[0]), text) if self._words else text

    def squid_conf(self, text):
        """The same for lines of squid.conf, where secret values are removed, too."""
        return self.text(LOGIN.sub(r'\1...', SECRET.sub(r'\1...', text)))

    def login(self, name):
        """The stand-in of a known login; if text() would replace it by its form, it is returned unchanged."""
        return name if name == '-' or TOKENS.fullmatch(name) else self._user(name)

    def _token(self, match):
        return getattr(self, f'_{match.lastgroup}')(match)

    def _url(self, match):
        host = match['host']
        said = f'[{self.address(host[1:-1])}]' if host.startswith('[') else self.host(host)
        scheme = match['url'].partition('://')[0]
        return f'{scheme}://{said}{match["port"] or ""}{"/..." if match["rest"] else ""}'

    def _path(self, match):
        return HOME.sub('/home/...', match[0]) if SYSTEM.match(match[0]) else '/...'

    def _mail(self, match):
        user, _, domain = match[0].partition('@')
        return f'{self._mails.setdefault(user, f"mail{len(self._mails) + 1}")}@{self.host(domain)}'

    def _mac(self, match):
        return '02:' + ':'.join(f'{byte:02x}' for byte in self._hash(match[0].lower().replace('-', ':').encode())[:5])

    def _v6(self, match):
        return self.address(match[0])

    _v4 = _v6

    def _name(self, match):
        # A file name or a sysctl.
        return match[0] if match[0].rpartition('.')[2] in FILES or match[0].startswith('net.') else self.host(match[0])

    def host(self, name):
        """The stand-in of a host name or address. Each label has its own stand-in, so that domains remain domains."""
        try:
            ipaddress.ip_address(name)
            return self.address(name)
        except ValueError:
            pass
        if name == 'localhost':
            return name
        labels = [label for label in name.lower().split('.') if label]
        said = '.'.join(self._labels.setdefault(label, f'n{len(self._labels) + 1}') for label in labels)
        return f'{"." if name.startswith(".") else ""}{said}.test'

    def address(self, text):
        """The stand-in of an address or network; other text and the loopback address are returned unchanged."""
        said = self._stand_ins.of(text)
        if said is not None:
            self._addresses[text] = said
        return said or text

    def _user(self, name):
        if name not in self._users:
            self._users[name] = next(said for number in self._numbers if (said := f'user{number}') not in self._known)
        return self._users[name]

    def _hash(self, data):
        return hmac.new(self._key, data, hashlib.sha256).digest()

    def leaks(self, text):
        """Addresses and names that were replaced in some text and still occur in this one."""
        names = [*filter(distinctive, self._users), *(address.partition('/')[0] for address in self._addresses)]
        stand_ins = {address.partition('/')[0] for address in self._addresses.values()}
        return [name for name in names if name not in stand_ins and
                re.search(rf'(?<![\w.:@-]){re.escape(name)}(?![\w.:@-])', text)]
