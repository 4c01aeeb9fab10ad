// SPDX-License-Identifier: GPL-2.0-or-later
// Code shared by all pages. Data from Squid becomes text, never markup.
'use strict';

const byId = (id) => document.getElementById(id);

function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

// A number with as many digits after the point as given, without groups of digits.
const formats = new Map();
function fixed(value, digits) {
    const key = `${shown.locale} ${digits}`;
    if (!formats.has(key))
        formats.set(key, new Intl.NumberFormat(shown.locale, {
            minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }));
    return formats.get(key).format(value);
}

const shown = {
    locale: 'en',
    number(value, digits = 0) { return value === null || value === undefined ? '–' : fixed(value, digits); },
    percent(value) { return value === null || value === undefined ? '–' : `${Math.round(100 * value)} %`; },
    scaled(value, step, units) {
        if (value === null || value === undefined)
            return '–';
        let unit = 0;
        for (; value >= step * 0.9995 && unit + 1 < units.length; ++unit)
            value /= step;
        return `${fixed(value, value < 9.95 && unit ? 1 : 0)} ${units[unit]}`;
    },
    rate(value) { return shown.scaled(value, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s']); },
    size(value) { return shown.scaled(value, 1024, ['B', 'KB', 'MB', 'GB', 'TB']); },
    seconds(value) {
        if (value === null || value === undefined)
            return '–';
        if (value < 0.0005)     // 0 ms would say that there is none
            return value > 0 ? '< 1 ms' : '0 ms';
        return value < 1 ? `${Math.round(1000 * value)} ms` : `${fixed(value, 1)} s`;
    },
    duration(value) {
        const minutes = Math.floor(value / 60);
        const hours = Math.floor(minutes / 60);
        if (hours >= 48)
            return `${Math.floor(hours / 24)} days`;
        return hours ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
    },
    age(value) { return value < 60 ? `${Math.round(value)} s` : shown.duration(value); },
    what(value) {
        const words = { exchange: 'request on a kept connection', response: 'response, between turns' };
        return words[value] || value;
    },
};

// The nth element of a parent, made if it does not exist.
function child(parent, n, tag) {
    return parent.children[n] || parent.appendChild(document.createElement(tag));
}

// A bar of the share received; the mark in its middle is the fair share, and a full bar is twice as much or more.
function fillBar(parent, { had, due }, words) {
    const bar = child(parent, 0, 'div');
    const text = child(parent, 1, 'span');
    const part = due && had !== null && had !== undefined ? had / due : null;
    bar.className = 'bar';
    bar.hidden = part === null;
    child(bar, 0, 'div').style.width = `${Math.min(100, Math.round(50 * part))}%`;
    child(bar, 1, 'div').className = 'mark';
    const whole = shown.rate(due).replace(' ', '\u00a0');     // no line ends before the unit
    setText(text, words || (part === null ? '–' : `${shown.percent(part)} of ${whole}`));
}

// Content of a cell: text, a user {href, text, small}, or a share {had, due}.
function fillCell(cell, content) {
    if (typeof content === 'string') {
        setText(cell, content);
        cell.classList.toggle('long', content.length > 40);
    } else if ('due' in content) {
        cell.classList.add('share');
        fillBar(cell, content);
    } else {
        const link = child(cell, 0, 'a');
        link.setAttribute('href', content.href);
        setText(child(link, 0, 'bdi'), content.text);
        setText(child(cell, 1, 'small'), content.small);
        cell.classList.toggle('long', content.text.length > 40);
    }
}

function newRow(count) {
    const row = document.createElement('tr');
    for (let n = 0; n < count; ++n) {
        const cell = row.appendChild(document.createElement(n ? 'td' : 'th'));
        if (!n)
            cell.scope = 'row';
    }
    return row;
}

// Shows rows of {key, cells}. While the table has keyboard focus no row is moved or removed, so that the row about to
// be selected stays in place.
function fillTable(id, rows, none) {
    const body = byId(id).tBodies[0];
    const heads = byId(id).tHead.rows[0].cells;
    const known = new Map(Array.from(body.rows, (row) => [row.dataset.key, row]));
    const held = body.contains(document.activeElement);
    const order = [];
    for (const { key, cells } of rows) {
        const row = known.get(key) || newRow(cells.length);
        row.dataset.key = key;
        row.classList.remove('gone');
        cells.forEach((content, n) => {
            fillCell(row.cells[n], content);
            for (const name of ['text', 'wide'])
                row.cells[n].classList.toggle(name, heads[n].classList.contains(name));
        });
        known.delete(key);
        order.push(row);
    }
    if (held) {
        known.forEach((row) => row.classList.add('gone'));
        body.append(...order.filter((row) => !row.parentNode));
        return;
    }
    if (!rows.length) {
        const row = document.createElement('tr');
        const cell = row.appendChild(document.createElement('td'));
        cell.colSpan = heads.length;
        cell.className = 'none';
        cell.textContent = none;
        order.push(row);
    }
    if (order.length !== body.rows.length || order.some((row, n) => row !== body.rows[n]))
        body.replaceChildren(...order);
}

function fillList(id, texts) {
    const list = byId(id);
    while (list.children.length > texts.length)
        list.lastElementChild.remove();
    texts.forEach((text, n) => setText(list.children[n] || list.appendChild(document.createElement('li')), text));
}

// By name, with the address beside it: anybody may choose the name of a device.
const userLink = ({ user, name }) => (
    { text: name || user, small: name ? user : '', href: `/user?name=${encodeURIComponent(user)}` });

// Turns texts of Squid into sentences.
const sentences = (texts) => texts.map((text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`).join(' ');

function showStatus(text, trouble) {
    const status = byId('status');
    setText(status, text);
    status.classList.toggle('trouble', Boolean(trouble));
}

async function fetchJson(path) {
    const answer = await fetch(path, { cache: 'no-store' });
    if (!answer.ok)
        throw new Error(`${path}: ${answer.status}`);
    return answer.json();
}

// Calls `step` now, and again `seconds()` after each call has ended, but not while the page is hidden.
// lost: the message if the service does not answer.
function repeat(step, seconds, paused = () => false,
                lost = () => 'The service of this page does not answer: what is below is old.') {
    let timer = 0;
    let running = false;
    async function run() {
        clearTimeout(timer);
        if (running)
            return;
        running = true;
        if (!document.hidden && !paused()) {
            let answered = true;
            try {
                await step();
            } catch (error) {
                answered = false;
                showStatus(lost(), true);
            }
            document.body.classList.toggle('unanswered', !answered);
        }
        running = false;
        timer = setTimeout(run, 1000 * seconds());
    }
    document.addEventListener('visibilitychange', run);
    run();
}
