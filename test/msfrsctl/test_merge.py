# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person changed in a file that setup writes again."""
import pytest

from msfrsctl.merge import merged
from msfrsctl.own import MARK

BASE = 'link 10\nmsfrs_class a 1\nmsfrs_class b 2\nlast\n'


@pytest.mark.parametrize('now, new, result, lost', (
    (BASE, 'link 9\nlast\n', 'link 9\nlast\n', []),
    ('mine\n' + BASE, BASE.replace('10', '9'), 'mine\n' + BASE.replace('10', '9'), []),
    (BASE + 'mine\n', BASE.replace('10', '9'), BASE.replace('10', '9') + 'mine\n', []),
    (BASE.replace('b 2', 'b 3'), BASE.replace('10', '9'), BASE.replace('10', '9').replace('b 2', 'b 3'), []),
    (BASE.replace('10', '8'), BASE.replace('10', '9'), BASE.replace('10', '9'), ['link 8']),
    (BASE.replace('link 10', MARK + '{}\nlink 8'), BASE.replace('10', '9'), BASE.replace('10', '9'), ['link 8']),
    (BASE.replace('link 10', MARK + '{}\nlink 8'), BASE.replace('last', 'first'),
     BASE.replace('link 10', MARK + '{}\nlink 8').replace('last', 'first'), []),
    (BASE.replace('msfrs_class a 1\n', ''), BASE.replace('10', '9'),
     BASE.replace('10', '9').replace('msfrs_class a 1\n', ''), []),
    (BASE.replace('link 10\nmsfrs_class a 1\n', 'link 7\nmsfrs_class a 5\nquota\n'), BASE.replace('10', '9'),
     'link 9\nmsfrs_class a 5\nquota\nmsfrs_class b 2\nlast\n', ['link 7']),
    (BASE.replace('msfrs_class b 2', 'mine\nmsfrs_class b 2'), 'link 10\nlast\n', 'link 10\nmine\nlast\n', []),
))
def test_merged(now, new, result, lost):
    assert merged(BASE, now, new) == (result, lost)
