# SPDX-License-Identifier: GPL-2.0-or-later
"""Web pages for browsers: each server is a site with PAGES pages, drawn from the seed alone.

A page is HTML with style sheets and a script that block its first paint, scripts that do not, a large picture at the
top and small ones below it. Its document and style are on the site's own server, scripts and pictures on two others, as
from a provider of scripts and a content network. The whole has some 400 kB in 17 requests: a seventh of the median page
of the HTTP Archive (about 2.7 MB, Web Almanac 2024), so that users of a narrow link finish enough of them in minutes.
"""
import functools
import os
import random
import zlib

from . import grid

PAGES = 4
DIRECTORY = 'pages'     #: of all files, below the content of a server
#: Parts of a page as (file type, sizes in bytes: median and sigma of a lognormal distribution, number).
STYLE, SCRIPT, ASYNC = ('css', 15_000, 0.5, 2), ('js', 25_000, 0.5, 1), ('js', 20_000, 0.5, 2)
TOP, PICTURES = ('png', 70_000, 0.3, 1), ('png', 12_000, 1.0, 10)
#: Bytes of a part: a picture needs the first, and larger parts are cut.
LEAST, MOST = 1_000, 300_000
PARAGRAPHS, WORDS = 20, 120
VOCABULARY = ('access', 'bandwidth', 'delay', 'fair', 'gateway', 'link', 'narrow', 'of', 'packet', 'queue', 'request',
              'scheduler', 'share', 'the', 'user', 'weight', 'window')
CSS = 'body{max-width:46rem;margin:1rem auto;font:16px/1.4 sans-serif}img{width:100%;height:auto;background:#ddd}'


class Pages:
    """The pages of the servers `names`."""

    def __init__(self, seed, names):
        self._seed, self._names = seed, tuple(names)

    def document(self, name, number):
        """The HTML of page `number`, from 0, of server `name`."""
        def draw(*what):
            return random.Random('/'.join(map(str, (self._seed, DIRECTORY, name, *what))))

        others = [each for each in self._names if each != name] or [name]
        scripts, pictures = (draw('hosts').choice(others), draw('pictures').choice(others))     # of the whole site
        parts = draw(number)

        def urls(host, kind, median, sigma, count):
            sizes = (min(max(median * parts.lognormvariate(0, sigma), LEAST), MOST) for _ in range(count))
            return [f'https://{host}/{DIRECTORY}/{grid.nearest(size)}.{kind}' for size in sizes]

        head = [f'<link rel="stylesheet" href="{url}">' for url in urls(name, *STYLE)]
        head += [f'<script src="{url}"></script>' for url in urls(scripts, *SCRIPT)]
        head += [f'<script async src="{url}"></script>' for url in urls(scripts, *ASYNC)]
        top, *small = (f'<img src="{url}" width="600" height="400" alt="">'
                       for url in (*urls(pictures, *TOP), *urls(pictures, *PICTURES)))
        texts = [f'<p>{" ".join(parts.choices(VOCABULARY, k=WORDS))}.</p>' for _ in range(PARAGRAPHS)]
        body = [text + picture for text, picture in zip(texts, small + [''] * PARAGRAPHS)]
        # Without an icon of its own, Chromium would request one.
        return '\n'.join(['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">',
                          *head, f'<title>{name}</title></head><body><h1>{name}, page {number}</h1>', top, *body,
                          '</body></html>\n'])

    @functools.lru_cache(maxsize=None)
    def size(self, path):
        """Bytes of the file at `path` of any server. Raises ValueError if no page has such a file."""
        stem, _, kind = path.removeprefix(f'/{DIRECTORY}/').rpartition('.')
        if kind != 'html':
            return int(stem)
        name, _, number = stem.rpartition('-')
        return len(self.document(name, int(number)))

    def write(self, directory):
        """Writes the documents and all of their parts to DIRECTORY below `directory`."""
        os.makedirs(f'{directory}/{DIRECTORY}', exist_ok=True)
        for name in self._names:
            for number in range(PAGES):
                text = self.document(name, number)
                _write(f'{directory}/{DIRECTORY}/{name}-{number}.html', text.encode())
                for part in {word.rpartition('/')[2] for word in text.split('"') if word.startswith('https:')}:
                    size, _, kind = part.partition('.')
                    _write(f'{directory}/{DIRECTORY}/{part}', part_of(kind, int(size)))


def path(name, number):
    return f'/{DIRECTORY}/{name}-{number}.html'


def _write(name, content):
    if not os.path.exists(name):
        with open(name, 'wb') as file:
            file.write(content)


def part_of(kind, size):
    """The `size` bytes of a part of a page, a valid file of its type."""
    if kind == 'png':
        return _picture(size)
    text = f'{CSS if kind == "css" else "document.documentElement.dataset.script = 1;"}/*'
    return (text + (size - len(text) - 2) * 'x' + '*/').encode()


def _picture(size):
    """A PNG of noise with 2 bits of grey for each pixel, which is about the density of photographs, 3:2. Its last chunk
    fills it up to `size`."""
    def chunk(kind, content):
        return len(content).to_bytes(4, 'big') + kind + content + zlib.crc32(kind + content).to_bytes(4, 'big')

    # Rows have height * 1.5 / 4 + 1 bytes, and 200 are for all else.
    height = int(((1 + 1.5 * (size - 200)) ** 0.5 - 1) / 0.75)
    wide = int(height * 1.5 / 4)
    noise = random.Random(size)
    rows = b''.join(b'\0' + noise.randbytes(wide) for _ in range(height))
    made = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', (wide * 4).to_bytes(4, 'big') + height.to_bytes(4, 'big') +
                                        bytes((2, 0, 0, 0, 0))) + chunk(b'IDAT', zlib.compress(rows, 0))
    end = chunk(b'IEND', b'')
    return made + chunk(b'fiLl', bytes(size - len(made) - len(end) - 12)) + end
