# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/release in a small repository with an origin; a script stands for scripts/make-packages."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAKEN = ('scripts/release', 'scripts/make-sbom', 'scripts/install-packages', 'scripts/packages', 'packaging',
         'squid-patches/lib.sh', 'squid-patches/7/revisions')
CONFIGURE = 'AC_INIT([msfrs], [{}])\n'
NEWS = 'News, newest first.\n\n1.2.0, 2026-01-31\n\n  Faster.\n\n1.1.9, 2025-12-24\n\n  1.2.0, 2026 will be faster.\n'
TIME = 1_700_000_000
NAMES = {'bookworm': 'msfrs-tools_1.2.0-1~deb12_amd64.deb',
         'trixie': 'squid-msfrs_7.7-1+msfrs1.2.0~deb13_amd64.deb'}
#: Of the version that scripts/make-packages would give: a release's where the tag is, a snapshot's otherwise.
MAKE_PACKAGES = f'''#!/bin/sh
cd "$(dirname "$0")/.." && mkdir -p build/packages/repository/pool/$2 && cd build/packages/repository/pool/$2 || exit
[ -n "$(git tag --points-at HEAD)" ] || snapshot='~git2026'
printf '!<arch>\\ndebian-binary   %-12s0' {TIME} >"msfrs-edge_1.2.0$snapshot-1~deb13_amd64.deb"
'''


class Tree:
    """A clone with a commit at TIME, and its origin."""

    def __init__(self, directory):
        self.top, self.origin = directory / 'tree', directory / 'origin.git'
        for name in TAKEN:
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, self.top / name)
        self.write('.gitignore', '/build/\n')
        self.write('configure.ac', CONFIGURE.format('1.2.0'))
        self.write('NEWS', NEWS)
        self.write('scripts/make-packages', MAKE_PACKAGES).chmod(0o755)
        subprocess.run(['git', 'init', '-q', '--bare', self.origin], check=True)
        self.git('init', '-q')
        self.git('remote', 'add', 'origin', self.origin)
        self.commit()

    def write(self, name, text):
        (self.top / name).write_text(text, encoding='utf-8')
        return self.top / name

    @property
    def _environment(self):
        who = {f'GIT_{role}_{what}': text for role in ('AUTHOR', 'COMMITTER')
               for what, text in (('NAME', 'a'), ('EMAIL', 'a@b'), ('DATE', f'{TIME} +0000'))}
        return {**os.environ, **who, 'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_SYSTEM': os.devnull}

    def git(self, *words):
        return subprocess.run(['git', *words], cwd=self.top, env=self._environment, check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit(self):
        self.git('add', '-A')
        self.git('commit', '-q', '--allow-empty', '-m', 'x')

    def release(self, *words):
        return subprocess.run([self.top / 'scripts/release', *words], env=self._environment, check=False, text=True,
                              capture_output=True)

    def package(self, suite, name, time=TIME):
        path = self.top / f'build/packages/repository/pool/{suite}/{name}'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'!<arch>\ndebian-binary   {time:<12}0', encoding='ascii')

    @property
    def made(self):
        """Names of the files of the release, relative to its folder."""
        return {str(path.relative_to(self.out)) for path in self.out.rglob('*') if path.is_file()}

    @property
    def out(self):
        return self.top / 'build/release/1.2.0'


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def refused(tree, said, *words):
    done = tree.release(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert not tree.out.parent.exists()


ALONE = {'SHA256SUMS', 'changelog.txt', 'msfrs-1.2.0.spdx.json', 'msfrs-1.2.0.tar.gz'}


def test_makes_the_files_and_leaves_tag_and_push(tree):
    done = tree.release()
    assert done.returncode == 0, done.stderr
    assert tree.made == ALONE
    assert (tree.out / 'changelog.txt').read_text() == '1.2.0, 2026-01-31\n\n  Faster.\n'
    sums = dict(line.split()[::-1] for line in (tree.out / 'SHA256SUMS').read_text().splitlines())
    assert sums == {name: hashlib.sha256((tree.out / name).read_bytes()).hexdigest()
                    for name in ALONE - {'SHA256SUMS'}}
    with tarfile.open(tree.out / 'msfrs-1.2.0.tar.gz') as archive:
        members = archive.getmembers()
    tracked = tree.git('ls-files').splitlines()
    assert {each.name for each in members if each.isfile()} == {f'msfrs-1.2.0/{name}' for name in tracked}
    assert {(each.mtime, each.uname, each.mode & 0o7022) for each in members} == {(TIME, 'root', 0)}
    assert not tree.git('tag')
    tag, push = done.stdout.splitlines()
    assert push == 'git push origin v1.2.0'
    subprocess.run(tag, shell=True, cwd=tree.top, env=tree._environment, check=True)
    assert tree.git('rev-parse', 'v1.2.0^{commit}') == tree.git('rev-parse', 'HEAD')
    subprocess.run(push, shell=True, cwd=tree.top, env=tree._environment, check=True, capture_output=True)
    assert tree.release('--tag').stdout == 'git push origin v1.2.0\n'     # the tag may be here and there


def test_is_reproducible(tree):
    tree.release()
    first = (tree.out / 'SHA256SUMS').read_text()
    (tree.out / 'of an earlier run').touch()
    for name in ('tar.umask', 'core.autocrlf'):
        tree.git('config', name, '0077' if name == 'tar.umask' else 'true')
    os.utime(tree.top / 'NEWS', (0, 0))
    assert tree.release().returncode == 0
    assert (tree.out / 'SHA256SUMS').read_text() == first
    assert tree.made == ALONE


def test_refuses_a_tree_that_differs_from_its_commit(tree):
    tree.write('NEWS', NEWS + 'more\n')
    refused(tree, 'commit or remove:\n M NEWS', '--dry-run')
    tree.git('checkout', 'NEWS')
    tree.write('forgotten.cc', '')
    refused(tree, '?? forgotten.cc')


@pytest.mark.parametrize('configured, news, said', (
    ('1.3.0', NEWS, 'NEWS has no heading for 1.3.0'),
    ('1.2', NEWS, 'NEWS has no heading for 1.2,'),
    ('1.2.0', NEWS.replace('2026-01-31', 'not released yet'), "NEWS has '1.2.0, not released yet'"),
    ('', NEWS, 'configure.ac has no line')))
def test_refuses_a_version_without_news(tree, configured, news, said):
    tree.write('configure.ac', CONFIGURE.format(configured))
    tree.write('NEWS', news)
    tree.commit()
    refused(tree, said)


@pytest.mark.parametrize('annotated', ((), ('-a', '-m', 'x')))
@pytest.mark.parametrize('place', ('here', 'of origin'))
def test_refuses_a_tag_of_another_commit(tree, place, annotated):
    tree.git('tag', *annotated, 'v1.2.0')
    tagged = tree.git('rev-parse', 'HEAD')
    if place != 'here':
        tree.git('push', '-q', 'origin', 'v1.2.0')
        tree.git('tag', '-d', 'v1.2.0')
    tree.commit()
    refused(tree, f'tag v1.2.0 {place} is at commit {tagged[:12]}')


def test_says_when_origin_cannot_be_asked(tree):
    shutil.rmtree(tree.origin)
    done = tree.release()
    assert done.returncode == 0
    assert 'origin does not say whether it has v1.2.0' in done.stderr


def test_a_dry_run_makes_nothing(tree):
    tree.package('trixie', NAMES['trixie'])
    done = tree.release('--dry-run', '--tag', '--packages', 'bookworm')
    assert done.returncode == 0, done.stderr
    assert done.stdout == ''
    for said in ('would make the tag v1.2.0', 'would build the packages of bookworm',
                 'would add the packages of build/packages/repository'):
        assert said in done.stderr
    assert not tree.out.parent.exists() and not tree.git('tag')
    assert not (tree.top / 'build/packages/repository/pool/bookworm').exists()


def test_takes_the_packages_of_the_release(tree):
    for suite, name in NAMES.items():
        tree.package(suite, name)
    assert tree.release().returncode == 0
    assert tree.made == ALONE | {f'packages/pool/{suite}/{name}' for suite, name in NAMES.items()}
    assert f'packages/pool/trixie/{NAMES["trixie"]}' in (tree.out / 'SHA256SUMS').read_text()


@pytest.mark.parametrize('name, time', (
    ('msfrs-dev_1.1.9-1~deb13_amd64.deb', TIME), ('msfrs-dev_1.2.0~git20260131-1~deb13_amd64.deb', TIME),
    ('squid-msfrs_7.7+msfrs1.2.0~git20260131~deb13_amd64.deb', TIME), ('msfrs-dev_1.2.0-1~deb13_amd64.deb', TIME - 1)))
def test_leaves_out_an_archive_with_other_packages(tree, name, time):
    tree.package('trixie', NAMES['trixie'])
    tree.package('trixie', name, time)
    done = tree.release()
    assert f'left out: build/packages/repository, since pool/trixie/{name} was not built from v1.2.0' in done.stderr
    assert tree.made == ALONE


def test_builds_packages_of_the_tag(tree):
    refused(tree, 'add --tag', '--packages', 'trixie')
    done = tree.release('--tag', '--packages', 'trixie')
    assert done.returncode == 0, done.stderr
    assert tree.made == ALONE | {'packages/pool/trixie/msfrs-edge_1.2.0-1~deb13_amd64.deb'}
    shutil.rmtree(tree.out.parent)
    tree.package('trixie', 'left.deb')
    done = tree.release('--packages', 'trixie')
    assert done.returncode == 1
    assert 'has pool/trixie/left.deb, which is left from another build' in done.stderr
    assert not tree.out.exists()


#: What SPDX 2.3 requires (schemas/spdx-schema.json of its specification, and clause 7.8: no analysed files, no code).
REQUIRED = {'': {'SPDXID', 'creationInfo', 'dataLicense', 'name', 'spdxVersion', 'documentNamespace'},
            'creationInfo': {'created', 'creators'}, 'packages': {'SPDXID', 'downloadLocation', 'name'},
            'relationships': {'spdxElementId', 'relatedSpdxElement', 'relationshipType'},
            'checksums': {'algorithm', 'checksumValue'},
            'externalRefs': {'referenceCategory', 'referenceLocator', 'referenceType'}}


def required(name, value):
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            assert REQUIRED[name] <= set(each), (name, each)
            for inner, more in each.items():
                required(inner, more)


def test_the_bill_of_materials(tree):
    assert tree.release().returncode == 0
    document = json.loads((tree.out / 'msfrs-1.2.0.spdx.json').read_text(encoding='utf-8'))
    required('', document)
    assert (document['spdxVersion'], document['dataLicense']) == ('SPDX-2.3', 'CC0-1.0')
    assert document['creationInfo']['created'] == '2023-11-14T22:13:20Z'
    assert re.fullmatch(r'urn:uuid:[0-9a-f-]{36}', document['documentNamespace'])
    packages = {package['SPDXID']: package for package in document['packages']}
    assert len(packages) == len(document['packages'])
    assert all(re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', identity) for identity in packages)
    assert not any(package['filesAnalyzed'] for package in packages.values())
    source = packages['SPDXRef-msfrs']
    assert (source['licenseDeclared'], source['versionInfo']) == ('GPL-2.0-or-later', '1.2.0')
    assert source['checksums'][0]['checksumValue'] == \
        hashlib.sha256((tree.out / source['packageFileName']).read_bytes()).hexdigest()

    relations = {(each['spdxElementId'], each['relationshipType'], each['relatedSpdxElement'])
                 for each in document['relationships']}
    assert ('SPDXRef-DOCUMENT', 'DESCRIBES', 'SPDXRef-msfrs') in relations
    assert {end for one, _, other in relations for end in (one, other)} == {*packages, 'SPDXRef-DOCUMENT'}
    needed = {(packages[one]['name'], relation) for one, relation, _ in relations if one in packages}
    # Of scripts/packages, of packaging/msfrs/control, of a package, with a version, after a variable, an alternative.
    for name, relation in (('g++', 'BUILD'), ('dh-python', 'BUILD'), ('ethtool', 'RUNTIME'), ('logrotate', 'RUNTIME'),
                           ('adduser', 'RUNTIME'), ('libcap2-bin', 'OPTIONAL'), ('squid', 'BUILD')):
        assert (name, f'{relation}_DEPENDENCY_OF') in needed
    assert not {'msfrs-plugins', 'msfrs-tools', 'squid-msfrs', 'misc', 'shlibs'} & {name for name, _ in needed}
