# SPDX-License-Identifier: GPL-2.0-or-later
"""Terms that the project no longer uses; docs/design/glossary.md has those in their place."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: {pattern: what to write}
RETIRED = {
    r'squid,? as it comes': 'unmodified Squid',
    r'wanders?\b|wandering': 'variable rate',
    r'\bgives way\b': 'is responsive',
    r'\bemphasis\b': 'weight factor',
    r'silent tunnels?': 'idle tunnel',
    r'(how much|what) (may be|is) on its way': 'bytes in flight',
    r'places? in the window': 'slot',
    r'the least round trip': 'base RTT',
    r'goes on in another class': 'is moved to another class',
    r'\bpassage\b': 'migration plan',
    r'\bdues\b': 'fair shares',
    r'\bwanted (is|are)\b': 'expected',
    r'\bis too much;|something is missing;': 'unexpected, incomplete',
    r'\bnone of that name\b': 'no such user',
    r'there is something that': 'exists and is not a socket',
    r'\bpass(es)? Squid by\b': 'bypasses Squid',
    r'\bcannot be had\b': 'cannot be bound',
    r'\btold (once|afterwards)\b': 'logged once; reported afterwards',
    r'\bbegins? anew\b': 'starts from zero',
}
PLACES = ('README.md', 'CONTRIBUTING.md', 'docs', 'conf', 'src', 'squid-patches', 'fieldtrial', 'msfrsctl', 'papers',
          'edgetrial', 'examples', 'docker', 'test')
TRACKED = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '--', *PLACES], cwd=ROOT,
                         check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize('pattern', RETIRED)
def test_a_retired_term_is_nowhere(pattern):
    found = []
    for name in TRACKED:
        path = ROOT / name
        if path == pathlib.Path(__file__) or path.suffix == '.patch' or '/seeds/' in name or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding='utf-8', errors='replace').splitlines(), 1):
            if re.search(pattern, line, re.IGNORECASE):
                found.append(f'{name}:{number}: {line.strip()[:80]}')
    assert not found, f'write "{RETIRED[pattern]}":\n' + '\n'.join(found)
