// SPDX-License-Identifier: GPL-2.0-or-later
// The gateway's page: figures every second, users every five, plots when a slot of the history is complete.
'use strict';

const past = new PastHour();
const plots = PLOTS.map((what) => new Plot(what));
const USERS_PACE = 5;   // s, as the service asks Squid
const FEW_USERS = 25;   // rows until all are wanted
let pace = 1;
let drawn = null; // the latest slot in the plots
let data = null;
let known = { count: 0, users: [] };
let fetchedUsers = 0;
const order = { by: 'rate', up: false, all: false };

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

function showLink({ link, window: places, classes, held, because }) {
    setText(byId('used'), `${shown.percent(link.utilisation)} of ${shown.rate(link.rate)}`);
    // More than all of it was read later than it came.
    setText(byId('own'), link.own !== null && link.own >= link.utilisation ? 'all of it' : shown.percent(link.own));
    setText(byId('places'), shown.number(classes.reduce((sum, cls) => sum + cls.in_flight, 0)));
    const waiting = classes.reduce((sum, cls) => sum + cls.queued + cls.paused, 0);
    setText(byId('waiting'), shown.number(waitingOf(held, waiting, () => true)));
    setText(byId('queue'), shown.seconds(link.queue));
    setText(byId('because'), because.length ? `The scheduler: ${sentences(because)}` : '');
    setText(byId('window'), `${shown.number(places.outstanding)} of ${shown.number(places.limit, 1)}`);
    setText(byId('utilisation'), `${shown.number(link.utilisation, 2)} of ${shown.number(link.target, 3)}`);
    setText(byId('base'), shown.seconds(link.base));
}

// Squid may read in one second what the kernel received in another, so the rates of one poll can exceed the link.
const MEAN_RATE = 5;    // s, as of users
const ratesOf = new Map();  // class: those of the last polls

function meanRate({ name, rate }) {
    const rates = [...(ratesOf.get(name) || []), rate].filter((each) => each !== null)
        .slice(-Math.ceil(MEAN_RATE / pace));
    ratesOf.set(name, rates);
    return rates.length ? rates.reduce((sum, each) => sum + each) / rates.length : null;
}

function showClasses({ classes, held }) {
    fillTable('classes', classes.map((cls) => {
        const rate = meanRate(cls);
        return { key: cls.name, cells: [
            cls.name, String(cls.weight), shown.number(cls.users), shown.rate(rate),
            { had: rate, due: cls.users ? cls.share * cls.users : null },
            shown.rate(cls.users && rate !== null ? rate / cls.users : null),
            shown.number(waitingOf(held, cls.queued + cls.paused, (row) => row.class === cls.name)),
            shown.number(cls.in_flight)] };
    }), 'No class.');
    fillTable('times', classes.map((cls) => ({ key: cls.name, cells: [
        cls.name, shown.number(cls.service), shown.seconds(cls.held_p50), shown.seconds(cls.held_p95),
        shown.seconds(cls.held_p99), shown.seconds(cls.held_per_mb), `${shown.number(cls.responses, 1)} a second`,
        shown.size(cls.size), shown.number(cls.silent)] })), 'No class.');
    const everRefused = classes.some(({ refused }) => Object.values(refused).some((count) => count > 0));
    byId('refused-section').hidden = !everRefused;
    fillTable('refused', classes.map(({ name, refused, refusals }) => ({ key: name, cells: [
        name, `${shown.number(refusals, 1)} a second`, shown.number(refused.per_user), shown.number(refused.total),
        shown.number(refused.admission), shown.number(refused.max_wait)] })), 'No class.');
}

// What the rows of users are sorted by; texts ascend at first, figures descend.
const SORTS = {
    name: (user) => user.name || user.user, class: (user) => user.class, rate: (user) => user.rate || 0,
    part: (user) => (user.due ? (user.rate || 0) / user.due : 0), bytes: (user) => user.bytes,
    waiting: (user) => user.waiting, in_flight: (user) => user.in_flight,
};

function compare(a, b) {
    const [x, y] = [SORTS[order.by](a), SORTS[order.by](b)];
    const way = typeof x === 'string' ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
    return (order.up ? way : -way) || a.user.localeCompare(b.user, undefined, { numeric: true });
}

// Without the rows of users in a class in which they were before: a quota or a boost has moved them to another.
function current(users) {
    const busy = (row) => row.rate > 0 || row.queued + row.in_flight > 0;
    const elsewhere = new Set(users.filter(busy).map(({ user }) => user));
    return users.filter((row) => busy(row) || !elsewhere.has(row.user));
}

function foundUsers() {
    const wanted = byId('name').value.trim().toLowerCase();
    return known.users.filter((user) => [user.name, user.user, user.class].some(
        (text) => text.toLowerCase().includes(wanted)));
}

function showUsers() {
    const held = data ? data.held : [];
    for (const user of known.users)
        user.waiting = waitingOf(held, user.queued, (row) => row.user === user.user && row.class === user.class);
    const found = foundUsers().sort(compare);
    const rows = order.all ? found : found.slice(0, FEW_USERS);
    const listed = known.users.length < known.count ? `the ${known.users.length} who receive most, of ${known.count}`
        : `${known.count} known now`;
    setText(byId('user-count'), `Shown: ${rows.length} of ${found.length === known.users.length ? ''
        : `${found.length} found among `}${listed}.`);
    const button = byId('all-users');
    button.hidden = found.length <= FEW_USERS;
    setText(button, order.all ? `Show ${FEW_USERS}` : `Show all ${found.length}`);
    document.querySelectorAll('#users [data-sort]').forEach((head) => {
        if (head.dataset.sort === order.by)
            head.closest('th').setAttribute('aria-sort', order.up ? 'ascending' : 'descending');
        else
            head.closest('th').removeAttribute('aria-sort');
    });
    fillTable('users', rows.map((user) => ({ key: `${user.user}\n${user.class}`, cells: [
        userLink(user), user.class, shown.rate(user.rate), { had: user.rate, due: user.due }, shown.size(user.bytes),
        shown.number(user.waiting), shown.number(user.in_flight)] })),
              known.users.length ? 'Nobody of that name; the button asks for others.' : 'Nobody asks for anything.');
}

const REASONS = {
    has_share: 'it has its fair share; others have theirs',
    waits: 'the link is full; its turn comes by weight',
};

// One row for each user who waits, the longest wait first.
function showHeld({ held, link }) {
    byId('held-section').hidden = !held.length;
    const waiters = new Map();
    for (const row of held) {
        const key = `${row.user}\n${row.class}`;
        if (!waiters.has(key))
            waiters.set(key, { ...row, key, count: 0, hosts: new Set(), waited: null });
        const waiter = waiters.get(key);
        waiter.count += 1;
        if (row.what !== 'response')    // a download that is paused between two turns does not wait
            waiter.waited = Math.max(waiter.waited, row.waited);
        waiter.hosts.add(row.host);
    }
    const rows = Array.from(waiters.values()).sort((a, b) => (b.waited || 0) - (a.waited || 0));
    fillTable('held', rows.map((row) => {
        const [first, second, ...more] = row.hosts;
        const why = row.waited === null ? 'its downloads take turns'
            : row.reason === 'waits' && !link.full ? 'it gets a turn in a moment' : REASONS[row.reason];
        return { key: row.key, cells: [
            userLink(row), row.class, shown.seconds(row.waited), String(row.count), why || '',
            [first, second].filter(Boolean).join(', ') + (more.length ? ` and ${more.length} more` : '')] };
    }), 'Nobody waits.');
}

function showQuotas(quotas) {
    byId('quota-section').hidden = !quotas.length;
    fillTable('quotas', quotas.map((quota) => ({ key: quota.class, cells: [
        quota.class, `${shown.size(quota.bytes)} per ${quota.period}`, quota.over, shown.number(quota.users),
        shown.number(quota.users_over), shown.duration(quota.ends_in)] })), 'No class has a quota.');
    fillTable('quota-users', quotas.flatMap((quota) => quota.most.map((user) => ({
        key: `${user.user}\n${quota.class}`, cells: [
            userLink(user), quota.class, shown.size(user.bytes), shown.percent(user.bytes / quota.bytes),
            user.bytes < quota.bytes ? quota.class : quota.over] }))), 'Nobody had anything.');
}

function showBeside({ beside, link, classes }) {
    byId('beside-section').hidden = beside.share === null && !beside.lines;
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
    data = await fetchJson('/data.json');
    pace = data.pace;
    if (past.append(data.newest)) {
        past.take(await fetchJson('/history.json'));
        drawn = null;
    }
    if (performance.now() - fetchedUsers > 1000 * USERS_PACE || known.count !== data.user_count) {
        known = await fetchJson('/users.json');
        known.users = current(known.users);
        fetchedUsers = performance.now();
    }
    showStatus(data.trouble && data.age !== null ? `These figures are ${shown.age(data.age)} old.`
        : data.trouble ? 'There are no figures yet.' : 'These figures are live.', data.trouble || !data.scheduling);
    setText(byId('now'), data.verdict);
    byId('now').className = `verdict ${data.light}`;
    classOrder = data.classes.map(({ name }) => name);
    byId('main').classList.toggle('old', Boolean(data.trouble));
    showHeld(data);
    showUsers();
    showClasses(data);
    showLink(data);
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
byId('name').addEventListener('input', showUsers);
byId('name').form.addEventListener('submit', (event) => {
    const names = new Set(foundUsers().map(({ user }) => user));
    if (!byId('name').value.trim())
        event.preventDefault();
    else if (names.size === 1)
        [byId('name').value] = names;
});
byId('all-users').addEventListener('click', () => {
    order.all = !order.all;
    showUsers();
});
document.querySelectorAll('#users [data-sort]').forEach((head) => head.addEventListener('click', () => {
    const by = head.dataset.sort;
    order.up = order.by === by ? !order.up : by === 'name' || by === 'class';
    order.by = by;
    showUsers();
}));
repeat(step, () => pace, () => byId('pause').getAttribute('aria-pressed') === 'true');
