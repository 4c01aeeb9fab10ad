// SPDX-License-Identifier: GPL-2.0-or-later
// One user: why is it slow?
'use strict';

const MINUTES = 60;
const plot = new Plot({ id: 'rate', title: 'Received, Mbit/s', scale: 1e-6, digits: 2, none: 0,
                        columns: [['rate', 'this user']] });
const past = new PastHour();
const SLOT = 15;       // s, of the history of a user
let drawn = -Infinity; // s

const user = new URLSearchParams(location.search).get('name') || '';

async function showPast(name) {
    const now = performance.now() / 1000;
    if (now - drawn < SLOT)
        return;
    drawn = now;
    const { step: slot, newest, columns } = await fetchJson(`/past.json?name=${encodeURIComponent(name)}`);
    const [rate] = Object.values(columns);
    byId('past-section').hidden = !rate;
    if (!rate)
        return;
    past.take({ step: slot, newest, columns: { rate } });
    plot.draw(past, MINUTES);
}

async function step() {
    const data = await fetchJson(`/user.json?name=${encodeURIComponent(user)}`);
    setText(byId('who'), data.name || data.user);
    setText(byId('address'), data.name ? data.user : '');
    document.title = `${data.name || data.user} - msfrs`;
    const [verdict, ...why] = data.why;
    showStatus(!data.trouble ? 'This answer is live.' : data.age === null ? 'There are no figures.'
        : `The figures below are ${shown.age(data.age)} old.`, data.trouble);
    setText(byId('verdict'), verdict);
    fillList('why', why);
    byId('boosting').hidden = !data.boost || !data.classes.length;
    byId('figures').classList.toggle('old', Boolean(data.trouble));
    fillTable('classes', data.classes.map((row) => ({ key: `${row.user}\n${row.class}`, cells: [
        row.class, shown.rate(row.rate), { had: row.rate, due: row.due }, shown.size(row.bytes)] })), 'Not known now.');
    fillTable('held', data.held.map((row, n) => ({ key: String(n), cells: [
        row.host, shown.seconds(row.waited), shown.what(row.what)] })),
              data.waiting ? 'None of it is among the 50 that wait longest.' : 'Nothing waits.');
    await showPast(data.user);
    document.documentElement.dataset.ready = 'yes';
}

// The header is what pages of other sites cannot send along.
byId('boost').addEventListener('click', async ({ target }) => {
    target.disabled = true;
    const answer = await fetch(`/boost?name=${encodeURIComponent(user)}`,
                               { method: 'POST', headers: { 'X-Msfrs-Boost': 'yes' } }).catch(() => null);
    setText(byId('boosted'), !answer ? 'The service of this page does not answer.' : answer.ok
        ? 'Asked for. The class changes within a minute; msfrsctl set lists boosts and takes them back.'
        : await answer.text());
    target.disabled = Boolean(answer && answer.ok);
});

if (user)
    repeat(step, () => 2);
else
    showStatus('Which user? Ask below.');
