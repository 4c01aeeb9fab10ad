# SPDX-License-Identifier: GPL-2.0-or-later
"""The image that compiles Squid has all patches, and the files that Squid is compiled with."""
import pathlib
import re
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
STAGE = re.compile(r'^FROM (\S+) AS (\S+)$(.*?)(?=^FROM |\Z)', re.MULTILINE | re.DOTALL)
# Ends with the first of them that is not there.
READ = """. squid-patches/lib.sh; set_series $default_series; series_patches | xargs cat
cd src; library_files | xargs cat library.am"""


def copied(name, to):
    """What the stage NAME, and those that it is made from, take of this tree or of another stage, in the folder TO."""
    text = (TOP / 'docker/Dockerfile').read_text(encoding='utf-8').replace('\\\n', ' ')
    stages = {stage: (parent, steps) for parent, stage, steps in STAGE.findall(text)}
    while name in stages:
        name, steps = stages[name]
        for words in re.findall('^COPY (.*)$', steps, re.MULTILINE):
            *sources, folder = words.split()
            if sources[0].startswith('--from='):
                sources = ['src']
            for source in sources:
                target = to / folder / (pathlib.Path(source).name if folder.endswith('/') else '')
                if (TOP / source).is_dir():
                    shutil.copytree(TOP / source, target, dirs_exist_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(TOP / source, target)


def test_it_has_all_that_squid_is_built_from(tmp_path):
    copied('squid', tmp_path)
    done = subprocess.run(['bash', '-eu', '-o', 'pipefail', '-c', READ], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_that_it_copies_is_left_out_of_the_build():
    left_out = [pathlib.PurePath(line) for line in
                (TOP / 'docker/Dockerfile.dockerignore').read_text(encoding='utf-8').splitlines()
                if line and line[0] not in '#!*']
    text = (TOP / 'docker/Dockerfile').read_text(encoding='utf-8').replace('\\\n', ' ')
    sources = [pathlib.PurePath(source) for words in re.findall('^COPY (?!--from=)(.*)$', text, re.MULTILINE)
               for source in words.split()[:-1]]
    assert sources and left_out
    assert [source for source in sources for path in left_out if path == source or path in source.parents] == []
