// SPDX-License-Identifier: GPL-2.0-or-later
// One user: why is it slow?
'use strict';

const user = new URLSearchParams(location.search).get('name') || '';

async function step() {
    const data = await fetchJson(`/user.json?name=${encodeURIComponent(user)}`);
    setText(byId('who'), data.user);
    document.title = `${data.user} - msfrs`;
    const [verdict, ...why] = data.why;
    showStatus(!data.trouble ? 'This answer is live.' : data.age === null ? 'There are no figures.'
        : `The figures below are ${shown.age(data.age)} old.`, data.trouble);
    setText(byId('verdict'), verdict);
    fillList('why', why);
    byId('figures').classList.toggle('old', Boolean(data.trouble));
    fillTable('classes', data.classes.map((row) => ({ key: `${row.user}\n${row.class}`, cells: [
        row.class, shown.rate(row.rate), shown.size(row.bytes)] })), 'Not known now.');
    fillTable('held', data.held.map((row, n) => ({ key: String(n), cells: [
        row.host, shown.seconds(row.waited), shown.what(row.what)] })),
              data.waiting ? 'None of it is among the 50 that wait longest.' : 'Nothing waits.');
    document.documentElement.dataset.ready = 'yes';
}

if (user)
    repeat(step, () => 2);
else
    showStatus('Which user? Ask below.');
