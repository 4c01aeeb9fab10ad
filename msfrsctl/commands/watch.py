# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl watch: ends a Squid that no longer answers, after new connections were sent past it. The unit msfrsctl-watch
runs it; Squid's own unit starts Squid again, and interception with it.

Users' connections to an intercepting port wait in the kernel until Squid accepts them. While none waits, Squid is not
asked anything. While some do, a connection to the port is made from here, which sends nothing and closes its half. It
is accepted after those that wait, and a Squid that runs closes it at once: no request, queue, name or server is
involved.

It also finds what else is wrong with the gateway, and says so to status, why and the page: lookout.py."""
from .. import interception
from ..errors import CtlError
from ..lookout import Lookout

HELP = 'restart a Squid that has stopped answering (for the unit msfrsctl-watch)'
#: Seconds between two looks.
EVERY = 2.0
#: Seconds in which Squid does not accept connections that wait, and then in which it does not reply to one from here:
#: together 15. Its longest pauses are those of a reconfiguration, some 0.2 s.
WAITING, REPLY = 5.0, 10.0
#: Seconds after which it may be ended again. If it hangs sooner, users are sent past it until then.
AGAIN = 600.0
#: Where a listener for all addresses is asked.
HERE = {'*': '::1', '::': '::1', '0.0.0.0': '127.0.0.1'}


def gather(_options, site):
    watch, lookout = Watch(site), Lookout(site)
    while True:
        watch.look()
        lookout.look()
        site.system.sleep(EVERY)


class Watch:
    def __init__(self, site):
        self._site, self._since, self._ended = site, {}, None

    def look(self):
        """Finds the ports at which users have waited for long enough, and asks Squid there."""
        clock = self._site.system.monotonic
        self._since = {listener: self._since.get(listener, clock()) for listener in self._waiting()}
        for listener, since in list(self._since.items()):
            if clock() - since < WAITING:
                continue
            self._since.pop(listener)
            if not self._site.system.ends(*listener, REPLY):
                self._hangs(*listener)
                return

    def _waiting(self):
        """(address, port) of intercepting listeners with connections that Squid has not accepted."""
        lines = [line.split() for line in self._site.system.run('ss', '-Hltn').out.splitlines()]
        queues = [words[3].rpartition(':') for words in lines if len(words) > 3 and words[1] != '0']
        if not queues:
            return []
        self._site.look_again()
        ports = {line.words[0].rpartition(':')[2] for name in ('http_port', 'https_port')
                 for line in self._site.conf.all(name) if {'intercept', 'tproxy'} & set(line.words)}
        addresses = [(address.partition('%')[0].strip('[]'), port) for address, _, port in queues if port in ports]
        return [(HERE.get(address, address), int(port)) for address, port in addresses]

    def _hangs(self, address, port):
        site, now = self._site, self._site.system.monotonic()
        site.system.say(f'Squid has not answered for {WAITING + REPLY:g} s at {address} port {port}: new connections '
                        'are sent past it')
        try:
            interception.change(site, 'drain')
        except CtlError as problem:
            site.system.say(str(problem))
        if self._ended is not None and now - self._ended < AGAIN:
            site.system.say(f'It was ended {now - self._ended:.0f} s ago, and is so at most once in {AGAIN:g} s')
            return
        self._ended = now
        site.system.say('It is ended; its unit starts it again')
        site.control('kill')


def show(_data):
    return ''
