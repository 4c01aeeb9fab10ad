// SPDX-License-Identifier: GPL-2.0-or-later
// Code shared by both pages. Data from Squid becomes text, never markup.
'use strict';

const byId = (id) => document.getElementById(id);

function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

const shown = {
    number(value, digits = 0) { return value === null || value === undefined ? '–' : value.toFixed(digits); },
    percent(value) { return value === null || value === undefined ? '–' : `${Math.round(100 * value)} %`; },
    scaled(value, step, units) {
        if (value === null || value === undefined)
            return '–';
        let unit = 0;
        for (; value >= step * 0.9995 && unit + 1 < units.length; ++unit)
            value /= step;
        return `${value.toFixed(value < 9.95 && unit ? 1 : 0)} ${units[unit]}`;
    },
    rate(value) { return shown.scaled(value, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s']); },
    size(value) { return shown.scaled(value, 1024, ['B', 'KB', 'MB', 'GB', 'TB']); },
    seconds(value) {
        if (value === null || value === undefined)
            return '–';
        return value < 1 ? `${Math.round(1000 * value)} ms` : `${value.toFixed(1)} s`;
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

function fillCell(cell, content) {
    const text = typeof content === 'object' ? content.text : content;
    let at = cell;
    if (typeof content === 'object' && content.href) {
        at = cell.firstElementChild || cell.appendChild(document.createElement('a'));
        at.setAttribute('href', content.href);
    }
    setText(at, text);
    cell.classList.toggle('long', text.length > 40);
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
            row.cells[n].classList.toggle('text', heads[n].classList.contains('text'));
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

const userLink = (name) => ({ text: name, href: `/user?name=${encodeURIComponent(name)}` });

// The problem and the age of the figures; empty if there is no problem.
function withAge({ trouble, age }) {
    return trouble && age !== null ? `${trouble} These figures are ${shown.age(age)} old.` : trouble;
}

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
function repeat(step, seconds, paused = () => false) {
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
                showStatus('The service of this page does not answer: what is below is old.', true);
            }
            document.body.classList.toggle('unanswered', !answered);
        }
        running = false;
        timer = setTimeout(run, 1000 * seconds());
    }
    document.addEventListener('visibilitychange', run);
    run();
}
