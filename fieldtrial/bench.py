# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost of the scheduler alone on this machine, for the report: a part of `make bench`, if it has been built."""
import json
import subprocess

from .base.paths import built

CLASSES, QUEUED = 1000, 100_000
PATIENCE_S = 120


def read(text):
    """{'ns_per_release', 'classes', 'queued', 'bytes_per_queued_request'} from Google Benchmark's JSON."""
    rows = {row['name']: row for row in json.loads(text)['benchmarks']}
    release = next(row for name, row in rows.items() if name.startswith(f'Scheduler/msf_release/{CLASSES}/{QUEUED}/'))
    memory = next(row for name, row in rows.items() if name.startswith('Memory'))
    return {'ns_per_release': release['real_time'], 'classes': CLASSES, 'queued': QUEUED,
            'bytes_per_queued_request': memory['bytes_per_queued_request']}


def measure(directory):
    """Writes bench.json into a run's directory; does nothing if the benchmark was not built."""
    bench = built('request_bench')
    if bench is None:
        return
    argv = [str(bench), f'--benchmark_filter=msf_release/{CLASSES}/{QUEUED}/|Memory', '--benchmark_format=json']
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        (directory / 'bench.json').write_text(json.dumps(read(done.stdout)))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, StopIteration) as error:
        print(f'the benchmark of the scheduler is left out of the report: {error}')
