// SPDX-License-Identifier: GPL-2.0-or-later
// The gateway's page: figures every second, plots when a slot of the history is complete.
'use strict';

const past = new PastHour();
const plots = PLOTS.map((what) => new Plot(what));
let pace = 1;
let drawn = null; // the latest slot in the plots

const minutes = () => Number(byId('range').value);

function draw() {
    for (const plot of plots)
        plot.draw(past, minutes());
    drawn = past.newest;
}

// Squid reports waiting requests twice: as rows, at most 50, and as counts, which were fetched somewhat earlier. The
// page uses the rows as long as they are complete.
const MOST_HELD = 50;
const waitingOf = (held, count, fits) => held.length < MOST_HELD ? held.filter(fits).length : count;

function showLink({ link, window: places, classes, held }) {
    setText(byId('used'), `${shown.percent(link.utilisation)} of ${shown.rate(link.rate)}`);
    setText(byId('own'), shown.percent(link.own));
    setText(byId('places'), `${shown.number(places.outstanding)} of ${shown.number(places.limit, 1)}`);
    const waiting = classes.reduce((sum, cls) => sum + cls.queued + cls.paused, 0);
    setText(byId('waiting'), shown.number(waitingOf(held, waiting, () => true)));
    setText(byId('queue'), shown.seconds(link.queue));
    setText(byId('base'), shown.seconds(link.base));
}

function showClasses({ classes, held }) {
    fillTable('classes', classes.map((cls) => ({ key: cls.name, cells: [
        cls.name, String(cls.weight), shown.number(cls.users), shown.rate(cls.rate),
        shown.rate(cls.users ? cls.rate / cls.users : null), shown.rate(cls.share),
        shown.number(waitingOf(held, cls.queued + cls.paused, (row) => row.class === cls.name)),
        shown.number(cls.in_flight), shown.number(cls.silent)] })), 'No class.');
    fillTable('times', classes.map((cls) => ({ key: cls.name, cells: [
        cls.name, shown.seconds(cls.held_p50), shown.seconds(cls.held_p95), shown.seconds(cls.held_p99),
        shown.seconds(cls.held_per_mb), `${shown.number(cls.responses, 1)} a second`,
        shown.size(cls.size)] })), 'No class.');
    fillTable('refused', classes.map(({ name, refused, refusals }) => ({ key: name, cells: [
        name, `${shown.number(refusals, 1)} a second`, shown.number(refused.per_user), shown.number(refused.total),
        shown.number(refused.admission), shown.number(refused.max_wait)] })), 'No class.');
}

function showUsers({ users, user_count: count, held }) {
    setText(byId('user-count'), users.length < count ? `The ${users.length} who receive most, of ${count}.`
        : `${count} ${count === 1 ? 'user is' : 'users are'} known now.`);
    fillTable('users', users.map((user) => ({ key: `${user.user}\n${user.class}`, cells: [
        userLink(user.user), user.class, shown.rate(user.rate), shown.size(user.bytes),
        shown.number(waitingOf(held, user.queued, (row) => row.user === user.user && row.class === user.class)),
        shown.number(user.in_flight)] })), 'Nobody asks for anything.');
}

function showHeld({ held }) {
    const seen = new Map(); // a number distinguishes rows of one user to one host
    fillTable('held', held.map((row) => {
        const name = `${row.user}\n${row.host}\n${row.what}`;
        seen.set(name, (seen.get(name) || 0) + 1);
        return { key: `${name}\n${seen.get(name)}`, cells: [
            userLink(row.user), row.class, row.host, shown.seconds(row.waited), shown.what(row.what)] };
    }), 'Nobody waits.');
}

function showQuotas(quotas) {
    byId('quota-section').hidden = !quotas.length;
    fillTable('quotas', quotas.map((quota) => ({ key: quota.class, cells: [
        quota.class, `${shown.size(quota.bytes)} a ${quota.period}`, quota.over, shown.number(quota.users),
        shown.number(quota.users_over), shown.duration(quota.ends_in)] })), 'No class has a quota.');
    fillTable('quota-users', quotas.flatMap((quota) => quota.most.map(({ user, bytes }) => ({
        key: `${user}\n${quota.class}`, cells: [
            userLink(user), quota.class, shown.size(bytes), shown.percent(bytes / quota.bytes),
            bytes < quota.bytes ? quota.class : quota.over] }))), 'Nobody had anything.');
}

function showBeside({ beside, link, classes }) {
    const other = link.own === null ? '' : beside.share === null
        ? 'In the last 30 s nothing that is certainly above 10 % of the link bypassed Squid. '
        : `${shown.percent(beside.share)} of the link bypassed Squid in the last 30 s. `;
    setText(byId('beside'), other + (beside.lines
        ? `Reported by msfrs-edge, of no class: ${shown.rate(beside.no_class)}.`
        : 'Nobody reports it to msfrs_excess, so it is charged to nobody.'));
    fillTable('excess', classes.map(({ name, excess }) => ({ key: name, cells: [name, shown.rate(excess)] })),
              'No class.');
}

async function step() {
    const data = await fetchJson('/data.json');
    pace = data.pace;
    if (past.append(data.newest)) {
        past.take(await fetchJson('/history.json'));
        drawn = null;
    }
    const off = data.scheduling ? '' : 'Requests are not scheduled now: msfrs is off, or has failed; see cache.log.';
    showStatus(withAge(data) || off || 'These figures are live.', data.trouble || off);
    setText(byId('now'), data.trouble || off ? '' : sentences(data.because));
    byId('main').classList.toggle('old', Boolean(data.trouble));
    showLink(data);
    showClasses(data);
    showUsers(data);
    showHeld(data);
    showQuotas(data.quotas);
    showBeside(data);
    if (drawn !== past.newest)
        draw();
    document.documentElement.dataset.ready = 'yes';
}

byId('range').addEventListener('change', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
byId('pause').addEventListener('click', ({ target }) => {
    const paused = target.getAttribute('aria-pressed') !== 'true';
    target.setAttribute('aria-pressed', String(paused));
    showStatus(paused ? 'Paused: these figures stay as they are.' : 'These figures are live.');
});
repeat(step, () => pace, () => byId('pause').getAttribute('aria-pressed') === 'true');
