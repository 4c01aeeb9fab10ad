// SPDX-License-Identifier: GPL-2.0-or-later
// The page of a user about itself, in the language of its browser.
'use strict';

const PACE = 5; // s, as the service asks Squid for its users
let words = null;

// A text of the translation, with {name} replaced by figures.
const say = (key, figures = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => String(figures[name]));

// When a period of a quota ends: the hour today, otherwise with the weekday, or the date if that is a week away.
function when(seconds) {
    const at = new Date(Date.now() + 1000 * seconds);
    const today = at.toDateString() === new Date().toDateString();
    const day = seconds < 6 * 86400 ? { weekday: 'long' } : { day: 'numeric', month: 'long' };
    return at.toLocaleString(words.language, { hour: '2-digit', minute: '2-digit', ...(today ? {} : day) });
}

function quotaText(quota) {
    const figures = { had: shown.size(quota.had), bytes: shown.size(quota.bytes), class: quota.class, then: quota.then,
                      period: words[`period_${quota.period}`] || quota.period, until: when(quota.ends_in) };
    const key = quota.had === null ? (quota.exceeded ? 'quota_perhaps' : 'quota')
        : quota.exceeded ? 'quota_exceeded' : 'quota_had';
    return say(key, figures);
}

// The classes in which the user has traffic now; after a move, the one before has none.
function current(classes) {
    const busy = classes.filter((row) => row.rate > 0 || row.queued + row.in_flight > 0);
    return busy.length ? busy : classes.slice(-1);
}

async function step() {
    if (!words) {
        words = await fetchJson('/words.json');
        document.documentElement.lang = words.language;
        shown.locale = words.language;
        document.title = words.title;
        document.querySelectorAll('[data-word]').forEach((element) => setText(element, words[element.dataset.word]));
    }
    const data = await fetchJson('/me.json');
    const reason = data.trouble ? 'trouble' : data.reason;
    const figures = { waiting: shown.number(data.waiting), longest: shown.seconds(data.longest) };
    setText(byId('now'), say(`gateway_${data.gateway}`));
    byId('now').className = `verdict ${data.light}`;
    setText(byId('verdict'), say(`why_${reason}`, figures));
    setText(byId('advice'), say(`advice_${reason}`));
    showStatus(data.trouble && data.age !== null ? say('age', { age: shown.age(data.age) }) : '');
    const rows = current(data.classes);
    const share = { had: rows.reduce((sum, row) => sum + (row.rate || 0), 0),
                    due: rows.reduce((most, row) => Math.max(most, row.due || 0), 0) };
    byId('share-section').hidden = !rows.length;
    byId('share-section').classList.toggle('old', data.trouble);
    const facts = { had: shown.rate(share.had), due: shown.rate(share.due), link: shown.rate(data.link.rate),
                    used: shown.percent(data.link.used) };
    fillBar(byId('share'), share, say('share', facts));
    fillList('facts', [...rows.map((row) => say('class', { class: row.class })), say('link', facts),
                       ...(data.link.queue === null ? [] : [say('queue', { queue: shown.seconds(data.link.queue) })])]);
    byId('quota-section').hidden = !data.quotas.length;
    fillList('quota', data.quotas.map(quotaText));
    setText(byId('who'), say('who', { who: data.name ? `${data.name} (${data.address})` : data.address }));
    document.documentElement.dataset.ready = 'yes';
}

repeat(step, () => PACE, () => false, () => (words ? words.lost : 'The gateway does not answer.'));
