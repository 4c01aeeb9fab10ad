# SPDX-License-Identifier: GPL-2.0-or-later
"""What is filmed: a school on a narrow link, in network namespaces. Teachers, pupils and guests download without end;
one teacher opens a page of maps."""
import dataclasses
import os
import pty
import re
import subprocess

import matplotlib.pyplot
import numpy

from fieldtrial.base.paths import PROGRAMS, ROOT
from fieldtrial.site import addresses, administrator, grid, squidconf
from fieldtrial.site.processes import listens
from fieldtrial.site.world import FORWARD_PORT, World

RATE_BPS, WEIGHTS, COUNTS = 4e6, {'teachers': 4, 'pupils': 2, 'guests': 1}, (2, 4, 6)
SERVERS = {'maps.example': 20.0, 'video.example': 60.0, 'updates.example': 160.0}     # round-trip times in ms
BUFFER_BDP = 4
#: Bytes of a download. It takes some seconds, so that a user's next one soon follows msfrsctl on and off.
DOWNLOAD = grid.nearest(400_000)
#: The downloads of a user at a time: a video, and two parts of an update.
FROM = 'video.example', 'updates.example', 'updates.example'
NAMES = ("Anna's laptop", 'Office', 'Pupil 1', 'Pupil 2', 'Pupil 3', 'Pupil 4', 'Guest 1', 'Guest 2', 'Guest 3',
         'Guest 4', 'Guest 5', 'Guest 6')
PAGE, USERS_PAGE = 'http://localhost:3880', f'http://{addresses.GATEWAY_IN4}:3881'
MAPS, MAP_SIZE = 9, (300, 200)      # pixels: some 60 kB each
LESSON = 'lesson.html'
LESSON_HTML = '''<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">
<title>Islands</title><style>body{{margin:0;font:17px/1.4 sans-serif;color:#1b1d21}}h1{{margin:0;padding:.5rem 1rem;
background:#0a5f7a;color:#fff;font-size:1.4rem}}p{{margin:.6rem 1rem}}div{{display:grid;gap:8px;margin:0 1rem;
grid-template-columns:repeat(3,1fr)}}img{{width:100%;aspect-ratio:3/2;background:#dde3e6}}</style></head><body>
<h1>Geography: islands</h1><p>Which of these islands could have a harbour, and where?</p>
<div>{}</div></body></html>
'''


def write_lesson(directory):
    """Writes the page and its maps, which are noise with the spectrum of landscapes, the same each time."""
    directory.mkdir(parents=True, exist_ok=True)
    wide, high = MAP_SIZE
    across, down = numpy.meshgrid(numpy.fft.fftfreq(wide), numpy.fft.fftfreq(high))
    falling = 1 / numpy.maximum(numpy.hypot(across, down), 1 / wide) ** 1.9
    for number in range(MAPS):
        noise = numpy.random.default_rng(number).normal(size=(high, wide))
        heights = numpy.fft.ifft2(numpy.fft.fft2(noise) * falling).real
        spread = 2.2 * heights.std()
        matplotlib.pyplot.imsave(directory / f'{number}.png', heights, cmap='terrain', vmin=-spread, vmax=1.2 * spread)
    (directory / LESSON).write_text(LESSON_HTML.format(
        ''.join(f'<img src="{number}.png" alt="">' for number in range(MAPS))))


class School(World):
    """The school. `teacher` is who opens the page, all others download; `guest` is one of them."""

    def __init__(self):
        super().__init__(rate_bps=RATE_BPS, weights=WEIGHTS, users=COUNTS, buffer_bdp=BUFFER_BDP,
                         rtts_ms=tuple(SERVERS.values()))
        self.servers = [dataclasses.replace(server, name=name) for server, name in zip(self.servers, SERVERS)]

    def _build(self):
        super()._build()
        self.start_names()
        self.start_origin()
        write_lesson(self.directory / 'origin-farm/content/pages/maps')
        self.teacher, self.guest = self.users[0], self.users[-1]
        self.follow_uids([self.teacher])
        self.lesson = f'http://{self.servers[0].name}/pages/maps/{LESSON}'
        #: Flags of Chromium, which asks no name server.
        self.flags = ['--host-resolver-rules=' + ', '.join(f'MAP {server.name} {server.v4}' for server in self.servers)]

    def start_stock(self):
        return self.start_squid(squidconf.stock(self), PROGRAMS / 'squid')

    def start_downloads(self):
        for user in self.users[1:]:
            for name in FROM:
                self._repeat(user, [f'http://{name}/b/{DOWNLOAD}/x'])

    def keep_loading(self):
        self._repeat(self.teacher, [f'http://{self.servers[0].name}/pages/maps/{number}.png' for number in range(MAPS)])

    def _repeat(self, user, urls):
        """A user loads URLs together, again and again."""
        known = [word for server in self.servers for word in ('--resolve', f'{server.name}:80:{server.v4}')]
        files = [word for url in urls for word in (url, '-o', '/dev/null')]
        self.start(self.users_host, ['sh', '-c', 'while :; do curl -s -Z "$@"; done', 'sh', '--interface', user.v4,
                                     *known, *files], f'curl-{user.name}.log')

    def laptop(self, directory):
        """Makes a directory in which a program of the teacher may write."""
        directory.mkdir()
        os.chown(directory, addresses.uid(0), addresses.uid(0))
        return directory

    def as_teacher(self, argv):
        """The command line that runs `argv` on the teacher's laptop."""
        uid = addresses.uid(0)
        return self.users_host.enter(['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', *argv])

    # --- the gateway, as an administrator sets it up ------------------------------------------------------------------

    def say(self, *words):
        """What msfrsctl prints. Raises CalledProcessError."""
        return subprocess.run(self._ctl(*words), check=True, capture_output=True, text=True).stdout

    def set_up(self):
        """`msfrsctl setup`, answered as at a terminal; returns what the terminal shows."""
        self._ctl = administrator.Administrator(self).argv
        networks = [addresses.class_prefixes(number)[0] for number in (1, 2)]
        answers = ['', '', '', f'{RATE_BPS / 1e6:g} Mbit/s', ' '.join(WEIGHTS), '', *networks, 'yes', 'yes']
        return dialogue(self._ctl('setup', '--edge', 'no', '--probe', self.lesson), answers)

    def as_installed(self, text):
        """A text of msfrsctl with the paths of Debian's packages."""
        here = self.squid_directory()
        for path, usual in (('/etc', '/etc/msfrs'), ('/squid ', '/usr/sbin/squid '), ('', '/etc/squid')):
            text = text.replace(f'{here}{path}', usual)
        return re.sub(r'\S+/(msfrs-iptables)', r'/usr/sbin/\1', text)

    def start_page(self):
        names = self.directory / 'names'
        names.write_text(''.join(f'{user.v4} {name}\n' for user, name in zip(self.users, NAMES, strict=True)))
        conf = self.directory / 'page.conf'
        conf.write_text(f'web {ROOT}/src/satellites/page/web\nnames {names}\n'
                        f'users_listen {USERS_PAGE.removeprefix("http://")}\nsquid 127.0.0.1:{FORWARD_PORT}\n')
        page = self.start(self.gateway, [str(PROGRAMS / 'msfrs-page'), str(conf)], 'page.log')
        page.wait_until(lambda: listens(self.gateway, 3880), 'listening')


def dialogue(argv, answers):
    """Runs a program at a terminal, and types an answer whenever it has asked: the text on the terminal."""
    ours, its = pty.openpty()
    said, answers = '', list(answers)
    with subprocess.Popen(argv, stdin=its, stdout=its, stderr=its) as program:
        os.close(its)
        while True:
            try:
                piece = os.read(ours, 4096).decode()
            except OSError:     # it has ended
                break
            said += piece
            if said.endswith((': ', ']: ')) and answers:
                os.write(ours, f'{answers.pop(0)}\n'.encode())
    os.close(ours)
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, argv, said)
    return said.replace('\r\n', '\n')
