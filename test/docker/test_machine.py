# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of these tests, without an engine."""
import machine
import pytest


def test_without_an_engine_the_message_names_the_stage_that_starts_one(tmp_path, monkeypatch):
    said = 'Cannot connect to the Docker daemon at unix:///nowhere.'
    (tmp_path / 'docker').write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", encoding='ascii')
    (tmp_path / 'docker').chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=':')
    with pytest.raises(AssertionError, match=r'no image here:1 \(Cannot connect .*; run: sudo ./check --only packages'):
        with machine.boot('here:1', 'packages'):
            pass
