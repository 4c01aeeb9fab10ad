# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/make-repository: an archive of small packages, used by an apt with a configuration of its own, over HTTP."""
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = 'trixie'
KEY = 'archive@localhost'
#: The packages of docs/user/install.md, as small ones.
PACKAGES = ('squid-msfrs', 'msfrs-tools', 'msfrs-page')


def run(*words, env=None, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, 'LC_ALL': 'C', **(env or {})})
    assert done.returncode == 0 or not check, (words, done.stdout, done.stderr)
    return done


@pytest.fixture(name='keys', scope='module')
def _keys():
    """The environment of a gpg with two keys. Its agent's socket needs a short path."""
    with tempfile.TemporaryDirectory(prefix='gpg') as home:
        env = {'GNUPGHOME': home}
        for name in (KEY, 'other@localhost'):
            run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', name, 'ed25519', 'sign', 'never', env=env)
        yield env
        run('gpgconf', '--kill', 'gpg-agent', env=env)


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a directory, and notes what was asked for."""
    asked = []

    def log_message(self, *_):
        self.asked.append(self.path)


class Archive:
    """A repository, its web server, and a machine whose apt has an empty system."""

    def __init__(self, tmp_path, keys):
        self.dir, self.machine, self._keys = tmp_path / 'repository', tmp_path / 'machine', keys
        for folder in ('etc/apt/sources.list.d', 'etc/apt/keyrings', 'var/lib/apt/lists/partial',
                       'var/cache/apt/archives/partial', 'var/lib/dpkg'):
            (self.machine / folder).mkdir(parents=True)
        (self.machine / 'var/lib/dpkg/status').touch()
        # The tests' directory is closed to the user that apt would become.
        (self.machine / 'apt.conf').write_text(
            f'Dir "{self.machine}";\nDir::State::status "{self.machine}/var/lib/dpkg/status";\n'
            'APT::Sandbox::User "root";\nAcquire::http::Proxy "DIRECT";\nAcquire::Retries "0";\n')
        self.asked = []
        handler = functools.partial(type('Server', (Server,), {'asked': self.asked}), directory=str(self.dir))
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self.url = f'http://127.0.0.1:{self._server.server_address[1]}'
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def add(self, name, version, suite=SUITE, architecture='all'):
        """A package with one file."""
        tree = self.dir.parent / f'{name}-{version}'
        (tree / 'DEBIAN').mkdir(parents=True)
        (tree / 'DEBIAN/control').write_text(
            f'Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: msfrs <msfrs@localhost>\n'
            'Description: package of a test\n')
        (self.dir / 'pool' / suite).mkdir(parents=True, exist_ok=True)
        run('dpkg-deb', '--root-owner-group', '-b', tree, self.dir / 'pool' / suite)

    def make(self, *words, suite=SUITE, check=True, data=None):
        """data: where the machine keeps its own key; as good as a fresh machine's otherwise."""
        with tempfile.TemporaryDirectory(prefix='key') as fresh:
            return run(ROOT / 'scripts/make-repository', *words, self.dir, suite, check=check,
                       env={**self._keys, 'XDG_DATA_HOME': data or fresh})

    def apt(self, *words, check=True):
        return run('apt-get', '-q', *words, env={'APT_CONFIG': str(self.machine / 'apt.conf')}, check=check)

    def register(self):
        """What docs/user/install.md tells an administrator to type, up to apt."""
        block = re.search(r'^(curl .*?)^apt ', (ROOT / 'docs/user/install.md').read_text(), re.M | re.S)[1]
        assert f'https://packages.example/{SUITE}.sources' in block
        script = block.replace('https://packages.example', self.url).replace('/etc/apt', f'{self.machine}/etc/apt')
        run('sh', '-ec', script, env={'no_proxy': '*'})

    def copy_source(self):
        """As docs/user/install.md says for an archive that was copied."""
        line = re.search(f'^cp .*/{SUITE}.sources .*$', (ROOT / 'docs/user/install.md').read_text(), re.M)[0]
        run('sh', '-ec', line.replace('/srv/msfrs', str(self.dir)).replace('/etc/apt', f'{self.machine}/etc/apt'))

    def update(self, check=True):
        return self.apt('update', '--error-on=any', check=check)

    def offered(self, name):
        """The versions of a package that apt knows."""
        done = run('apt-cache', 'madison', name, env={'APT_CONFIG': str(self.machine / 'apt.conf')})
        return [line.split('|')[1].strip() for line in done.stdout.splitlines()]


@pytest.fixture(name='archive')
def _archive(tmp_path, keys):
    archive = Archive(tmp_path, keys)
    try:
        for name in PACKAGES:
            archive.add(name, '1.0')
        archive.make('--sign', KEY, '--url', archive.url)
        archive.register()
        yield archive
    finally:
        archive.close()


def test_apt_takes_signed_packages_as_the_page_says(archive):
    archive.update()
    assert any('/by-hash/SHA256/' in path or '/by-hash/SHA512/' in path for path in archive.asked), archive.asked
    assert '/dists/trixie/InRelease' in ''.join(archive.asked)
    archive.apt('install', '-y', '--download-only', *PACKAGES)
    assert len(list((archive.machine / 'var/cache/apt/archives').glob('*.deb'))) == len(PACKAGES)
    release = (archive.dir / 'dists/trixie/Release').read_text()
    assert not re.search(r'^(MD5Sum|SHA1):', release, re.M), 'apt trusts neither'
    assert f'Architectures: {run("dpkg", "--print-architecture").stdout}' in release
    run('gpgv', '--keyring', _dearmored(archive), archive.dir / 'dists/trixie/Release.gpg',
        archive.dir / 'dists/trixie/Release')


def _dearmored(archive):
    ring = archive.machine / 'ring.gpg'
    run('gpg', '--batch', '--yes', '--dearmor', '-o', ring, archive.dir / 'msfrs.asc')
    return ring


def test_a_changed_package_is_refused(archive):
    archive.update()
    path = next((archive.dir / f'pool/{SUITE}').glob('msfrs-tools_*.deb'))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = archive.apt('install', '-y', '--download-only', 'msfrs-tools', check=False)
    assert done.returncode and 'Hash Sum mismatch' in done.stderr, done.stderr


@pytest.mark.parametrize('options', ((), ('--sign', 'other@localhost')), ids=('own-key', 'another-key'))
def test_who_else_made_it_is_refused(archive, options):
    """The machine has the key of before."""
    archive.add('msfrs-tools', '6.6')
    archive.make(*options)
    assert archive.update(check=False).returncode
    assert '6.6' not in archive.offered('msfrs-tools')


def test_a_later_version_and_a_machine_that_has_read_the_release_before(archive):
    archive.update()
    release = archive.dir / 'dists/trixie/InRelease'
    before = release.read_bytes()
    archive.add('msfrs-tools', '1.1')
    archive.make('--sign', KEY)
    after = release.read_bytes()
    # Another machine has read the release of before, and asks for its indexes now.
    release.write_bytes(before)
    shutil.rmtree(archive.machine / 'var/lib/apt/lists')
    (archive.machine / 'var/lib/apt/lists/partial').mkdir(parents=True)
    archive.update()
    assert archive.offered('msfrs-tools') == ['1.0']
    release.write_bytes(after)
    # HTTP counts in seconds.
    os.utime(release, (release.stat().st_mtime + 60,) * 2)
    archive.update()
    assert archive.offered('msfrs-tools') == ['1.1', '1.0']
    text = (archive.dir / 'dists/trixie/Release').read_text()
    assert ' Release' not in text and ' InRelease' not in text, 'it lists indexes only'


def test_suites_and_architectures_are_apart(archive):
    archive.add('msfrs-edge', '2.0~deb12', suite='bookworm', architecture='amd64')
    archive.add('msfrs-tools', '2.0~deb12', suite='bookworm')
    archive.add('msfrs-edge', '2.0~deb12+arm', suite='bookworm', architecture='arm64')
    archive.make('--sign', KEY, suite='bookworm')
    archive.update()
    assert archive.offered('msfrs-edge') == [], 'that is for another suite'
    assert 'Architectures: amd64 arm64\n' in (archive.dir / 'dists/bookworm/Release').read_text()
    for architecture, version in (('amd64', '2.0~deb12'), ('arm64', '2.0~deb12+arm')):
        packages = (archive.dir / f'dists/bookworm/main/binary-{architecture}/Packages').read_text()
        assert re.findall('^Version: (.*)$', packages, re.M) == [version, '2.0~deb12'], 'and those for all'


def test_a_machine_has_one_key_of_its_own(archive):
    """Of its own gpg, not of the user's; a gateway that has it takes a later archive, as install.md says."""
    with tempfile.TemporaryDirectory(prefix='key') as data:
        for hours, version in enumerate(('1.1', '1.2'), 1):
            archive.add('msfrs-tools', version)
            archive.make(data=data)
            os.utime(archive.dir / 'dists/trixie/InRelease', (time.time() + 3600 * hours,) * 2)     # HTTP counts in seconds
            if version == '1.1':
                archive.copy_source()
            archive.update()
            assert archive.offered('msfrs-tools')[0] == version
        home = pathlib.Path(data) / 'msfrs/gnupg'
        assert home.stat().st_mode & 0o777 == 0o700
        assert not list(home.glob('S.*')), 'its agent has ended'
    (archive.dir / 'dists/trixie/InRelease').unlink()
    (archive.dir / 'dists/trixie/Release.gpg').unlink()
    assert archive.update(check=False).returncode, 'an archive without a signature'


@pytest.mark.parametrize('words, said', (
    (('--sign', 'nobody@localhost'), "cannot be signed with key 'nobody@localhost'"),
    (('--sing', KEY), "'--sing' is unknown"),
    (('--url', 'packages.example'), "--url 'packages.example' is not a URL"),
    (('--sign', KEY, 'one-too-many'), 'usage:'),
))
def test_mistakes_are_named_and_leave_the_archive_as_it_is(archive, words, said):
    before = (archive.dir / 'dists/trixie/InRelease').read_bytes()
    done = archive.make(*words, check=False)
    assert done.returncode and said in done.stderr, done.stderr
    assert (archive.dir / 'dists/trixie/InRelease').read_bytes() == before
    archive.update()


def test_the_url_stays_until_another_is_given(archive):
    path = archive.dir / f'{SUITE}.sources'
    before = path.read_text()
    assert f'URIs: {archive.url}\nSuites: {SUITE}\n' in before and '\n -----BEGIN PGP PUBLIC KEY' in before
    archive.make('--sign', KEY)
    assert path.read_text() == before
    archive.make('--sign', KEY, '--url', 'https://packages.example/msfrs')
    assert path.read_text() == before.replace(archive.url, 'https://packages.example/msfrs')
    path.unlink()
    archive.make('--sign', KEY)
    assert 'URIs: file:/srv/msfrs\n' in path.read_text()


def test_a_suite_without_packages(archive):
    done = archive.make(suite='bookworm', check=False)
    assert done.returncode == 1 and 'there are no packages in' in done.stderr
