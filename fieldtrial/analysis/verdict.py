# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on a run: every target of `targets` as a row, reached, missed or not judged.

A target compares arms of one run only, under one condition (everything but the arm is equal). Each condition of the run
gives one row; what was not measured has none.
If the machine was too busy for the figures of a cell to reflect its arm (`stalls`), the cell's targets are neither.
"""
from dataclasses import dataclass, replace

from . import paper, recovery, stalls, wording
from .measures import SIZE_LABELS
from .stats import StatsError
from .targets import CLAIM, COST, DISTURBED, OURS, PAPER_ARM, STOCK, TARGETS, TRUST, first_class, relative_mean
from .wording import percent

#: Of report.__main__, which says what they mean.
EXIT_REACHED, EXIT_MISSED, EXIT_NOTHING, EXIT_UNJUDGED = 0, 3, 4, 5

REACHED, MISSED, UNJUDGED, FINDING = 'reached', 'missed', 'not judged', 'finding'

MOST_LOST = 0.01                # share of requests refused or failed above which other figures are unreliable
MOST_NS_PER_RELEASE = 1000
UNCERTAIN = 'The limit lies within the confidence interval.'


@dataclass(frozen=True)
class Row:
    """One judged target under one condition. `sentence` explains a miss, or why it is not judged."""

    section: str
    name: str
    where: str              # the condition, as text
    compared: str
    measured: str
    wanted: str
    outcome: str
    sentence: str = ''
    interval: tuple = None  # 95 % confidence interval of the measured ratio, if there is one
    limit: float = None     # the number in `wanted`

    @property
    def uncertain(self):
        """Whether the limit lies within the confidence interval, so that another run may give a different outcome."""
        return self.interval is not None and self.interval[0] <= self.limit <= self.interval[1]


@dataclass(frozen=True)
class Verdict:
    """All rows of a run, and the saving in mean latency over unmodified Squid under each condition."""

    rows: list
    savings: list

    def count(self, outcome):
        return sum(1 for row in self.rows if row.outcome == outcome)

    def exit_status(self, strict):
        """Of the program that judged the run: EXIT_REACHED, unless targets decide (`strict`)."""
        if not strict:
            return EXIT_REACHED
        if self.count(MISSED):
            return EXIT_MISSED
        if self.count(UNJUDGED):
            return EXIT_UNJUDGED
        return EXIT_REACHED if self.count(REACHED) else EXIT_NOTHING


def _named(text, weights):
    """`text` with the name of the class of the greatest weight."""
    return text.format(first=first_class(weights))


def _where(target, cell):
    """The condition as text; with the workload if the target has several."""
    setting = wording.setting(cell)
    return f'{wording.workload(cell)}: {setting}' if len(target.workloads) > 1 else setting


def _row(target, group):
    """The Row of `target` for one condition, `group` being {arm: Measures}; None if an arm is not in it, or if it was
    not measured."""
    if not {target.arm, target.against or target.arm} <= set(group):
        return None
    ours, cell = group[target.arm], group[target.arm].cell
    try:
        limit = target.limit(cell) if callable(target.limit) else target.limit
        figure = target.measure(ours, group[target.against]) if target.against else target.measure(ours)
    except StatsError:
        return None
    reaches, said = target.rule
    wanted = said(limit)

    def row(measured, outcome, sentence='', interval=None):
        return Row(target.section, _named(target.name, cell.weights), _where(target, cell), target.compared(), measured,
                   wanted, outcome, sentence, interval, limit)
    why = unjudged(*(group[arm] for arm in (target.arm, target.against) if arm))
    if why:
        return row(figure.text, UNJUDGED, why)
    if reaches(figure.value, limit):
        return row(figure.text, REACHED, '', figure.interval)
    missed = row(figure.text, MISSED, _short(target, cell, figure, wanted), figure.interval)
    return replace(missed, sentence=f'{missed.sentence} {UNCERTAIN}') if missed.uncertain else missed


def unjudged(*measured):
    """One sentence with the reason why a figure of these Measures is not judged; '' if it is judged."""
    for measures in measured:
        why = stalls.why_not_judged(measures)
        if why:
            return f'Not judged: {why} ({wording.arm(measures.cell.arm)}, {wording.condition(measures.cell)}).'
    return ''


def _short(target, cell, figure, wanted):
    """One sentence on a target that was missed."""
    subject = _named(target.plain, cell.weights)
    said = figure.said.format(other=wording.arm(target.against)) or figure.text
    return f'{subject} was {said}; {wanted} was wanted ({wording.workload(cell)}: {wording.setting(cell)}).'


def by_condition(measured):
    """[{arm: Measures}], one per condition, arms and conditions in display order. Of two cells with the same arm under
    the same condition the later one counts."""
    groups = {}
    for measures in measured:
        groups.setdefault(measures.cell.condition(), {})[measures.cell.arm] = measures
    ordered = [dict(sorted(group.items(), key=lambda item: wording.arm_order(item[0]))) for group in groups.values()]
    return sorted(ordered, key=lambda group: wording.condition_order(next(iter(group.values())).cell))


def over_seeds(groups):
    """[[{arm: Measures}]]: the groups of by_condition, together those that differ in the seed alone."""
    found = {}
    for group in groups:
        found.setdefault(next(iter(group.values())).cell.setting(), []).append(group)
    return list(found.values())


def merged(groups):
    """{arm: [Measures]} of groups that differ in the seed alone."""
    found = {}
    for group in groups:
        for arm, measures in group.items():
            found.setdefault(arm, []).append(measures)
    return dict(sorted(found.items(), key=lambda item: wording.arm_order(item[0])))


def judge(groups, bench=None):
    """The Verdict on a run: `groups` as by_condition makes them, `bench` the object of bench.json, or None."""
    measured = [measures for group in groups for measures in group.values()]
    rows = [_row(target, group) for target in TARGETS for group in groups
            if target.judges(next(iter(group.values())).cell)]
    saved = savings(groups)
    rows += [*_recovered(measured), *_bench(bench or {}), _lost(measured), _claim_row(saved)]
    return Verdict([row for row in rows if row], saved)


def _recovered(measured):
    """Rows that count how often shares recovered after a disturbance, over all seeds and cells of one rate: all of at
    least recovery.WANTED occurrences are required."""
    found, without = {}, {}
    for measures in measured:
        if measures.cell.arm == OURS:
            rate, alone = wording.rate(measures.cell.rate_bps), recovery.alone(measures.cell)
            for label, each in (wording.attempt(recovery.occurrences, measures)[0] or {}).items():
                key, why = (label, alone, rate), unjudged(measures)
                found.setdefault(key, []).extend([] if why else each)
                if why:
                    without[key] = why
    wanted = f'each time of {recovery.WANTED} or more'
    for (label, alone, rate), every in found.items():
        fine = sum(each.fine for each in every)
        said = f'{fine} of {len(every)} times within {percent(recovery.LIMIT, 0)}'
        if len(every) < recovery.WANTED:
            if (label, alone, rate) not in without:
                continue
            outcome, sentence = UNJUDGED, without[label, alone, rate]
        else:
            outcome = REACHED if fine == len(every) else MISSED
            sentence = '' if fine == len(every) else (
                f'After the disturbance "{label}" the classes were right {said} ({rate}); {wanted} was wanted '
                f'({alone}).')
        yield Row(DISTURBED, f'right again after: {label}', rate, wording.arm(OURS), said, wanted, outcome, sentence)


def _lost(measured):
    """The row for refused and failed requests, the worst of our cells; None without requests."""
    wanted, found, why = f'at most {percent(MOST_LOST, 0)}', [], ''
    for measures in measured:
        if measures.cell.arm in (OURS, PAPER_ARM):
            share, reason = wording.attempt(measures.failed_share)
            why = unjudged(measures) or why
            if reason is None and not unjudged(measures):
                found.append((share, measures.cell))
    name = 'requests refused or failed'
    if why and not found:
        return Row(TRUST, name, 'all workloads', wording.arm(OURS), wording.NONE, wanted, UNJUDGED, why)
    if not found:
        return None
    share, cell = max(found, key=lambda pair: pair[0])
    fine = share <= MOST_LOST
    where = f'{wording.arm(cell.arm)}, {wording.condition(cell)}'
    return Row(TRUST, name, f'worst of {len(found)} cells', wording.arm(cell.arm), percent(share, 2), wanted,
               REACHED if fine else MISSED,
               '' if fine else f'{percent(share, 2)} of the requests were refused or failed ({where}); such requests '
               'are in no latency, so the latencies of that cell flatter.')


@dataclass(frozen=True)
class Saving:
    """Saving in mean latency of an arm over unmodified Squid under one condition: {subject: Figure or reason}.
    The figure's value is the ratio of the means; 1 - value is the saving as the paper defines it."""

    cell: object
    figures: dict

    @property
    def share(self):
        """Saving over all objects; None if not measured."""
        figure = self.figures['all']
        return None if isinstance(figure, str) else 1 - figure.value


def savings(groups):
    """[Saving] for each condition that has unmodified Squid and an MSF-RS arm: does the paper's claim hold today?"""
    found = []
    for group in groups:
        for arm in (PAPER_ARM, OURS):
            if STOCK in group and arm in group and not group[arm].cell.trace and \
                    not unjudged(group[arm], group[STOCK]):
                cell = group[arm].cell
                subjects = {'all': {}}
                subjects.update({name: {'name': name} for name in cell.weights})
                subjects.update({label: {'size': size} for size, label in SIZE_LABELS.items()})
                subjects.update({'near servers': {'near': True}, 'far servers': {'near': False}})
                figures = {}
                for subject, which in subjects.items():
                    figure, reason = wording.attempt(lambda: relative_mean(group[arm], group[STOCK], **which))
                    figures[subject] = reason if figure is None else figure
                found.append(Saving(cell, figures))
    return found


def _claim_row(found):
    """The paper's claim on the mean latency: not a target but a question, so the row is a finding; None without both
    arms."""
    low, high = paper.LATENCY_CLAIM.value
    name, wanted = 'mean latency saved against stock', f'paper: {percent(low, 0)} to {percent(high, 0)}'
    compared = f'{wording.arm(OURS)} / {wording.arm(STOCK)}'
    known = [saving for saving in found if saving.cell.arm == OURS and saving.share is not None]
    if not known:
        return None
    best, least = (pick(known, key=lambda saving: saving.share) for pick in (max, min))
    holds = sum(1 for saving in known if saving.share >= low)
    sentence = (f'Over all objects, at least {percent(low, 0)} of the mean latency is saved in {holds} of {len(known)} '
                f'conditions; most in {wording.condition(best.cell)} ({percent(best.share, 0)}), least in '
                f'{wording.condition(least.cell)} ({percent(least.share, 0)}).')
    return Row(CLAIM, name, f'{len(known)} conditions', compared,
               f'{percent(least.share, 0)} to {percent(best.share, 0)}', wanted, FINDING, sentence)


def _bench(bench):
    """Rows of the scheduler's benchmark: `bench` has ns_per_release, classes, queued, bytes_per_queued_request, or
    nothing."""
    where = f"{bench.get('classes')} classes, {bench.get('queued')} queued"
    cost, size = bench.get('ns_per_release'), bench.get('bytes_per_queued_request')
    wanted = f'at most {MOST_NS_PER_RELEASE} ns'

    def row(name, *rest):
        return Row(COST, name, where, 'scheduler alone', *rest)

    if cost is not None:
        fine = cost <= MOST_NS_PER_RELEASE
        yield row('one release', f'{cost:.0f} ns', wanted, REACHED if fine else MISSED,
                  '' if fine else f'A release took {cost:.0f} ns with {where}; {wanted} was wanted.')
    if size is not None:
        yield row('memory per queued request', f'{size:.0f} bytes', 'stated', FINDING)
