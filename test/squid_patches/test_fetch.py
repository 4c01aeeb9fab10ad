# SPDX-License-Identifier: GPL-2.0-or-later
"""fetch gets a revision that no index lists any more from the pool, and only the expected one. The archive is a server
of this test; apt-get and apt-cache, which would have to trust its keys, are scripts that print the output that they
would have with such an archive."""
import contextlib
import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

PATCHES = pathlib.Path(__file__).resolve().parents[2] / 'squid-patches'
LISTED, OLDER = '6.13-2+deb13u9', '6.13-2+deb13u8'
POOL = 'pool/main/s/squid'
APT_GET = '''case "$*" in
*" source "* | source*) echo "E: Failed to fetch squid.dsc  404  Not Found"; exit 100 ;;
esac'''


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(directory):
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=directory)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f'http://127.0.0.1:{server.server_port}/'
        finally:
            server.shutdown()
            thread.join()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Archive:
    """A pool with an older revision, and a tree with fetch and the accepted revisions."""

    def __init__(self, directory):
        self.pool, self.tree, self._stubs = directory / 'archive' / POOL, directory / 'tree', directory / 'bin'
        for path in (self.pool, self.tree / 'squid-patches/6', self._stubs):
            path.mkdir(parents=True)
        for name in ('fetch', 'lib.sh'):
            shutil.copy(PATCHES / name, self.tree / 'squid-patches')
        self._stub('apt-get', APT_GET)
        self.list_version(LISTED)
        self.files = {'squid_6.13.orig.tar.xz': b'upstream', f'squid_{OLDER}.debian.tar.xz': b'patches'}
        sums = ''.join(f' {sha256(data)} {len(data)} {name}\n' for name, data in self.files.items())
        self.dsc = f'Source: squid\nChecksums-Sha256:\n{sums}Files:\n 0 0 squid_not.fetched\n'.encode()
        for name, data in {**self.files, f'squid_{OLDER}.dsc': self.dsc}.items():
            (self.pool / name).write_bytes(data)
        self.allow(sha256(self.dsc))

    def allow(self, *sums):
        (self.tree / 'squid-patches/6/revisions').write_text(
            '# why\n' + ''.join(f'{OLDER} {sum}\n' for sum in sums), encoding='ascii')

    def list_version(self, version):
        """The only version in the index."""
        self._stub('apt-cache', f'echo "Version: {version}"')

    def _stub(self, name, script):
        (self._stubs / name).write_text(f'#!/bin/sh\n{script}\n', encoding='ascii')
        (self._stubs / name).chmod(0o755)

    def fetch(self):
        with served(self.pool.parents[3]) as mirror:
            environment = {**os.environ, 'PATH': f'{self._stubs}:{os.environ["PATH"]}', 'no_proxy': '127.0.0.1'}
            return subprocess.run([self.tree / 'squid-patches/fetch', '--mirror', mirror, '--security-mirror', mirror,
                                   '6'], env=environment, capture_output=True, text=True, check=False)

    @property
    def taken(self):
        """Names of the files that are the series' source now."""
        return [path.name for path in (self.tree / 'build/squid/sources/6').iterdir()]


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


def test_takes_an_older_revision_from_the_pool(archive):
    done = archive.fetch()
    assert done.returncode == 0, done.stderr
    assert f'lists squid {LISTED} but has it no more' in done.stderr
    assert f'no index lists squid {OLDER} any more, but the pool has it' in done.stderr
    expected = {**archive.files, f'squid_{OLDER}.dsc': archive.dsc}
    assert sorted(archive.taken) == sorted((*expected, 'fetched', 'older'))
    taken = archive.tree / 'build/squid/sources/6'
    assert {name: (taken / name).read_bytes() for name in expected} == expected
    assert (taken / 'fetched').read_text(encoding='ascii').split()[1::2] == sorted(expected)
    assert (taken / 'older').read_text() == (f"squid_{OLDER} is not Debian's newest: squid {LISTED} is, but could not be "
                                             f'fetched (404)\n')


@pytest.mark.parametrize('changed', ['squid_6.13.orig.tar.xz', f'squid_{OLDER}.dsc'])
def test_refuses_what_has_another_checksum(archive, changed):
    (archive.pool / changed).write_bytes(b'forged, and of some other length')
    done = archive.fetch()
    assert done.returncode == 1
    assert f'none of the listed versions could be fetched: {LISTED}' in done.stderr
    assert not archive.taken


def test_takes_no_revision_that_is_not_named(archive):
    archive.allow()
    done = archive.fetch()
    assert done.returncode == 1
    assert not archive.taken


def test_writes_no_file_outside_its_directory(archive):
    forged = archive.dsc.replace(b'squid_6.13.orig', b'../squid_6.13.orig')
    (archive.pool / f'squid_{OLDER}.dsc').write_bytes(forged)
    archive.allow(sha256(forged))
    assert archive.fetch().returncode == 1
    assert not list(archive.tree.rglob('*.orig.tar.xz'))


def test_goes_on_to_the_next_revision(archive):
    archive.allow('0' * 64, sha256(archive.dsc))
    assert archive.fetch().returncode == 0


def test_takes_a_revision_when_the_suite_has_another_series(archive):
    archive.list_version('8.1-1')
    done = archive.fetch()
    assert done.returncode == 0, done.stderr
    assert f'no index lists squid {OLDER} any more, but the pool has it' in done.stderr
    archive.allow()
    assert archive.fetch().returncode == 0      # keeps the one that is there


def test_says_that_the_suite_has_another_series(archive):
    archive.list_version('8.1-1')
    archive.allow()
    done = archive.fetch()
    assert done.returncode == 1
    assert 'the archive has no squid 6.13 in trixie trixie-updates' in done.stderr


def test_every_series_names_revisions_whole():
    for series in ('6', '7'):
        text = (PATCHES / series / 'revisions').read_text(encoding='ascii')
        lines = [line.split() for line in text.splitlines() if not line.startswith('#')]
        assert lines and all(len(line) == 2 and len(line[1]) == 64 and set(line[1]) <= set('0123456789abcdef')
                             for line in lines)
