// SPDX-License-Identifier: GPL-2.0-or-later
// One user: why is it slow?
'use strict';

const user = new URLSearchParams(location.search).get('name') || '';

async function step() {
    const data = await fetchJson(`/user.json?name=${encodeURIComponent(user)}`);
    setText(byId('who'), data.user);
    document.title = `${data.user} - msfrs`;
    showStatus(data.trouble || 'This answer is live.', data.trouble);
    fillList('why', data.why);
    fillTable('classes', data.classes.map((row) => ({ key: row.class, cells: [
        row.class, shown.rate(row.rate), shown.size(row.bytes), shown.number(row.queued),
        shown.number(row.in_flight)] })), 'Not known now.');
    fillTable('held', data.held.map((row, n) => ({ key: String(n), cells: [
        row.host, shown.seconds(row.waited), shown.what(row.what)] })), 'Nothing waits.');
    document.documentElement.dataset.ready = 'yes';
}

if (user)
    repeat(step, () => 2);
else
    showStatus('Which user? Ask below.');
