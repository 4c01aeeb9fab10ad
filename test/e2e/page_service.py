# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-page on a host of a test, and a cache manager with figures set by the test."""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import pwd
import socket
import threading

from background import PATIENCE, wait_until
from fieldtrial.base.paths import ROOT
from our_daemon import OurDaemon

BUILD = pathlib.Path(os.environ.get('MSFRS_TEST_BUILD', ROOT / 'build/obj'))
PROGRAM = BUILD / 'msfrs-page'
#: The program that explains for msfrsctl why.
WHY = BUILD / 'msfrs-why'
CHART = pathlib.Path('/usr/share/javascript/chart.js/chart.min.js')
PORT = 3880

WEIGHTS = {'gold': 4, 'silver': 2, 'bronze': 1}


def metrics(polls, classes):
    """mgr:msfrs-metrics at a poll. polls: its number; classes: for each {metric without msfrs_class_: value}."""
    text = ('msfrs_scheduling 1\nmsfrs_link_capacity_bytes_per_second 250000\nmsfrs_link_metered 1\n'
            f'msfrs_link_utilisation_ratio {0.9 + 0.05 * (polls % 3)}\nmsfrs_link_own_ratio 0.7\n'
            'msfrs_window_target_ratio 0.985\nmsfrs_window_outstanding_responses 4\n'
            f'msfrs_window_limit_responses {4 + polls % 5 / 2}\nmsfrs_holding 1\nmsfrs_link_queue_seconds 0.04\n'
            'msfrs_excess_lines_total 9\n'
            f'msfrs_excess_no_class_bytes_total {5000 * polls}\n')
    for name, figures in classes.items():
        label = name.replace('\\', '\\\\').replace('"', '\\"')
        text += ''.join(f'msfrs_class_{metric}{{class="{label}"}} {value}\n' for metric, value in figures.items())
        text += f'msfrs_class_held_seconds{{class="{label}",quantile="0.95"}} 1.25\n'
        text += f'msfrs_class_refused_requests_total{{class="{label}",reason="max_wait"}} {polls // 5}\n'
    return text + '# EOF\n'


def rows(users):
    """The manager's lines of (user, class, bytes)."""
    return ''.join(f'  - {{user: {json.dumps(user, ensure_ascii=False)}, class: "{cls}", bytes: {count}, queued: 1, '
                   'in_flight: 1}\n' for user, cls, count in users)


class Manager:
    """A cache manager on a host. `users`, `held`: its rows of them; `quotas`: for each class with one, the text between
    its braces, and the (user, bytes) with the most; `status`: an error to answer with, or None."""

    def __init__(self, host, port=3128):
        self.users = [('10.0.0.1', 'gold', 1000), ('10.0.0.2', 'bronze', 500)]
        self.held = [('10.0.0.2', 'bronze', 'slow.example', 3.5, 'request')]
        self.quotas = {}
        self.active = {}    #: users of a class with a request, by its name; 3 of any other class
        self.status = None
        self.polls = 0
        self.names = list(WEIGHTS)
        manager = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):   # the name that the library calls
                manager.answer(self)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler, bind_and_activate=False)
        self._server.socket.close()
        with host.inside():
            self._server.socket = socket.create_server(('127.0.0.1', port))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def text(self, action):
        if action == 'msfrs-metrics':
            self.polls += 1
            figures = {name: {'weight': WEIGHTS.get(name, 1), 'users': self.active.get(name, 3), 'queued_requests': 2,
                              'paused_responses': 1, 'in_flight_requests': 2, 'requests_total': 10 * self.polls,
                              'received_bytes_total': 20_000 * WEIGHTS.get(name, 1) * self.polls,
                              'excess_bytes_total': 3000 * self.polls, 'held_seconds_sum': 2.5 * self.polls}
                       for name in self.names}
            return metrics(self.polls, figures)
        if action == 'msfrs-users':
            return 'users:\n' + rows((user, cls, count * self.polls) for user, cls, count in self.users)
        classes = ''.join(f'  - name: {json.dumps(name)}\n    quota: {{{said}}}\n    quota_users:\n' + ''.join(
            f'      - {{user: {json.dumps(user)}, bytes: {count}}}\n' for user, count in most)
            for name, (said, most) in self.quotas.items())
        held = ''.join(f'  - {{user: {json.dumps(user, ensure_ascii=False)}, class: "{cls}", host: {json.dumps(host)}, '
                       f'waited: {waited}, what: {what}}}\n' for user, cls, host, waited, what in self.held)
        return ('scheduling: true\nholding: yes, because 9 wait and the window is full (W is 4 of W+ 4.00)\nwindow:\n'
                f'classes:\n{classes}held:\n{held}top_users:\n'
                + rows(self.users[:10]))

    def crowd(self, number=500):
        """A realistic load of a school: that many users, a tenth of them active, some of whom wait. Returns the leases
        of a DHCP server with their names."""
        classes = ['gold'] * 1 + ['silver'] * 3 + ['bronze'] * 6
        made = [(f'10.20.{n // 250}.{n % 250 + 1}', classes[n % 10]) for n in range(number)]
        self.users = [(user, cls, WEIGHTS[cls] * (40_000 // (10 + n // 10) if n < number // 10 else 0))
                      for n, (user, cls) in enumerate(made)]
        self.active = {name: sum(cls == name for _, cls in made[:number // 10]) for name in WEIGHTS}
        sites = ('video.example', 'cdn.news.example', 'updates.os.example', 'mail.example', 'maps.example')
        self.held = [(*made[n % 8 * 4 + 3], sites[n % 5], 1.4 - n * 0.06, ('request', 'response', 'exchange')[n % 3])
                     for n in range(20)]
        devices = ('laptop', 'phone', 'tablet')
        return ''.join(f'1790000000 02:00:00:00:{n // 250:02x}:{n % 250:02x} {user} {devices[n % 3]}-{n} *\n'
                       for n, (user, _) in enumerate(made) if n % 4)

    def answer(self, request):
        body = self.text(request.path.rpartition('/')[2]).encode()
        request.send_response(self.status or 200)
        request.send_header('Content-Length', str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)


class Page(OurDaemon):
    """msfrs-page. lines: additional configuration."""

    def __init__(self, host, directory, *lines):
        super().__init__(host)
        self.directory = pathlib.Path(directory)
        self.file = self.directory / 'page.conf'
        self.configure(*lines)
        nobody = pwd.getpwnam('nobody')
        self.state = self.directory / 'state'
        self.state.mkdir(exist_ok=True)
        os.chown(self.state, nobody.pw_uid, nobody.pw_gid)

    def configure(self, *lines):
        self.file.write_text(f'web {ROOT}/src/satellites/page/web\nhistory {self.directory}/state/history\n'
                             f'faults {self.directory}/faults\n'
                             + ''.join(f'{line}\n' for line in lines))

    def command(self):
        return [str(PROGRAM), str(self.file)]

    def connect(self, port=PORT, source=None):
        """A connection to it, as a socket; source: an address to connect from."""
        return self.host.socket(socket.AF_INET, socket.SOCK_STREAM, source=source,
                                peer=('127.0.0.1', port), timeout=PATIENCE)

    def get(self, path, *, method='GET', port=PORT, source=None, **headers):
        """(status, headers, body)"""
        with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port)) as connection:
            connection.sock = self.connect(port, source)
            connection.request(method, path, headers={name.replace('_', '-'): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def json(self, path):
        status, _, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def wait_for_users(self, condition, what):
        """The users, once they fulfil the condition."""
        return wait_until(lambda: condition(users := self.json('/users.json')['users']) and users, what)

    def wait_for(self, condition, what):
        """data.json, once it fulfils the condition."""
        return wait_until(lambda: (data := self.json('/data.json')) and condition(data) and data, what)
