# SPDX-License-Identifier: GPL-2.0-or-later
"""One run out of the parts that several load generators wrote: the same files, as if one had made all requests."""
import bisect
import collections
import csv
import json
import pathlib
import shutil

#: Tables of what ended, one row each, and the column by which they are in order.
EVENTS, ENDED = ('requests.csv', 'pages.csv'), 't_end'
SAMPLES, META = 'bytes.csv', 'meta.json'
#: Of meta.json: counted by name, and counted.
COUNTS, SUMS = ('requests', 'pages', 'payload_bytes', 'errors', 'tunnels'), ('most_in_flight', 'cpu_s', 'memory_kb')


def merge(parts, out):
    """Puts together what the directories `parts` hold, all of one run, in the directory `out`."""
    parts, out = [pathlib.Path(part) for part in parts], pathlib.Path(out)
    if len(parts) == 1:
        for name in (*EVENTS, SAMPLES, META):
            shutil.copyfile(parts[0] / name, out / name)
        return
    for name in EVENTS:
        (header, *_), rows = zip(*(_read(part / name) for part in parts))
        at = header.index(ENDED)
        write_csv(out / name, header, sorted((row for part in rows for row in part), key=lambda row: float(row[at])))
    write_csv(out / SAMPLES, *_samples([_read(part / SAMPLES) for part in parts]))
    meta = _meta([json.loads((part / META).read_text(encoding='utf-8')) for part in parts])
    (out / META).write_text(json.dumps(meta, indent=1) + '\n', encoding='utf-8')


def _read(path):
    """(header, rows)."""
    with open(path, encoding='utf-8', newline='') as file:
        header, *rows = csv.reader(file)
    return header, rows


def write_csv(path, header, rows):
    """A CSV file as the load generator makes it."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(header)
        writer.writerows(rows)


def _samples(tables):
    """Header and rows of bytes.csv. All sample at the same moments, but for milliseconds: the rows are those of the
    part that lasted longest, and what others had got by then lies between two rows of theirs."""
    longest = max(tables, key=lambda table: float(table[1][-1][0]))
    readers = [_verbatim(table) if table is longest else _between(table) for table in tables]
    header = ['t', *(name for names, _ in tables for name in names[1:])]
    return header, [[row[0], *(value for reader in readers for value in reader(number, float(row[0])))]
                    for number, row in enumerate(longest[1])]


def _verbatim(table):
    return lambda number, _t: table[1][number][1:]


def _between(table):
    """A function of time: what each user of the table had got by then; after its end, what it had then."""
    times = [float(row[0]) for row in table[1]]
    values = [[int(value) for value in row[1:]] for row in table[1]]

    def at(_number, t):
        after = bisect.bisect_right(times, t)
        if after == len(times):
            return values[-1]
        if after == 0:
            return values[0]
        share = (t - times[after - 1]) / (times[after] - times[after - 1])
        return [round(low + share * (high - low)) for low, high in zip(values[after - 1], values[after])]

    return at


def _meta(parts):
    """meta.json: the run is the same in all parts; what was counted adds up. Of requests in flight, the sum of each
    one's most is at least what there was at once."""
    whole = dict(parts[0])
    for name in COUNTS:
        total = collections.Counter()
        for part in parts:
            total.update(part[name])
        whole[name] = dict(total)
    whole.update((name, round(sum(part[name] for part in parts), 3)) for name in SUMS)
    whole['stopped'] = next((part['stopped'] for part in parts if part['stopped']), None)
    whole['t_end'] = max(part['t_end'] for part in parts)
    return whole
