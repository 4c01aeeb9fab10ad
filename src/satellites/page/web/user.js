// SPDX-License-Identifier: GPL-2.0-or-later
// One user: why is it slow?
'use strict';

const MINUTES = 60;
const plot = new Plot({ id: 'rate', title: 'Received, Mbit/s', scale: 1e-6, digits: 2, none: 0,
                        columns: [['rate', 'this user']] });
const past = new PastHour();
let drawn = -Infinity; // s

const user = new URLSearchParams(location.search).get('name') || '';

// The history has a slot for every 5 s.
async function showPast(name) {
    const now = performance.now() / 1000;
    if (now - drawn < 5)
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
    byId('figures').classList.toggle('old', Boolean(data.trouble));
    fillTable('classes', data.classes.map((row) => ({ key: `${row.user}\n${row.class}`, cells: [
        row.class, shown.rate(row.rate), { had: row.rate, due: row.due }, shown.size(row.bytes)] })), 'Not known now.');
    fillTable('held', data.held.map((row, n) => ({ key: String(n), cells: [
        row.host, shown.seconds(row.waited), shown.what(row.what)] })),
              data.waiting ? 'None of it is among the 50 that wait longest.' : 'Nothing waits.');
    await showPast(data.user);
    document.documentElement.dataset.ready = 'yes';
}

if (user)
    repeat(step, () => 2);
else
    showStatus('Which user? Ask below.');
