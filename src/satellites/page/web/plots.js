// SPDX-License-Identifier: GPL-2.0-or-later
// The plots of the last hour, each with the same figures as a table.
'use strict';

// columns: [name in the history, label, scale, axis]; prefix: one line for each class instead; none: value of a slot
// without one; level: a horizontal line.
const PLOTS = [
    { id: 'link', title: 'The link: use and delay', digits: 0, most: 100, level: [100, 'rate of the link, 100 %'],
      units: ['% of the rate', 'ms'],
      columns: [['utilisation', 'use of the link, %', 100], ['own', 'of it through Squid, %', 100],
                ['queue', 'delay at the provider, ms', 1000, 'right']] },
    { id: 'window', title: 'Window: responses', digits: 1, columns: [['limit', 'W+: may be under way'],
                                                                   ['outstanding', 'W: are under way']] },
    { id: 'rates', title: 'Received by class, Mbit/s', scale: 1e-6, digits: 2, prefix: 'rate/', stacked: true },
    { id: 'waiting', title: 'Waiting or paused, by class', digits: 0, prefix: 'waiting/' },
    { id: 'held', title: '95 % are held less than, s', digits: 2, prefix: 'held/' },
    { id: 'refused', title: 'Refused requests a second', digits: 2, columns: [['refused', 'refused']] },
    { id: 'beside', title: 'Received beside Squid, Mbit/s', scale: 1e-6, digits: 2, columns: [['excess', 'reported']] },
];
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];
const LINES = 6;
// Names of the classes as configured: each keeps its colour, in all plots.
let classOrder = [];

// A colour of page.css, which adapts it to light and dark mode.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The legend's entries, each with a sample of its line. (The default is a box, whose outline fills the gaps of a dash.)
const samples = (chart) => Chart.defaults.plugins.legend.labels.generateLabels(chart).map((entry) => {
    const { borderColor, borderDash, borderWidth = 2 } = chart.data.datasets[entry.datasetIndex];
    return { ...entry, pointStyle: 'line', strokeStyle: borderColor, lineDash: borderDash, lineWidth: borderWidth };
});

class PastHour {
    constructor() { this.columns = new Map(); }

    // Takes the content of /history.json.
    take({ step, newest, columns }) {
        Object.assign(this, { step, newest, columns: new Map(Object.entries(columns)) });
    }

    // Takes the newest slot of /data.json. Returns whether the history has a gap now and must be fetched again.
    append({ slot, values }) {
        const slots = this.columns.size ? this.columns.values().next().value.length : 0;
        if (!this.step || !slots || slot < this.newest || slot > this.newest + 1)
            return true;
        for (const name of Object.keys(values)) {
            if (!this.columns.has(name))
                this.columns.set(name, new Array(slots).fill(null));
        }
        for (const [name, column] of this.columns) {
            if (slot > this.newest) {
                column.shift();
                column.push(null);
            }
            if (name in values)
                column[slots - 1] = values[name];
        }
        this.newest = slot;
        return false;
    }

    // [minutes before now, value] of a column.
    points(name, minutes, scale, none = null) {
        const column = this.columns.get(name) || [];
        const wanted = Math.min(column.length, Math.round(minutes * 60 / this.step));
        return column.slice(column.length - wanted).map((value, n) => (
            { x: (n + 1 - wanted) * this.step / 60, y: value === null ? none : value * scale }));
    }
}

class Plot {
    constructor(what) {
        this.what = { scale: 1, ...what };
        const figure = document.createElement('figure');
        const caption = figure.appendChild(document.createElement('figcaption'));
        caption.textContent = what.title;
        const frame = figure.appendChild(document.createElement('div'));
        frame.className = 'canvas';
        this.canvas = frame.appendChild(document.createElement('canvas'));
        this.canvas.setAttribute('role', 'img');
        this.details = figure.appendChild(document.createElement('details'));
        this.details.appendChild(document.createElement('summary')).textContent = `${what.title}, as a table`;
        this.details.addEventListener('toggle', () => this.fillTable());
        byId(`plot-${what.id}`).append(figure);
        if (typeof Chart === 'undefined')
            frame.hidden = true;
        else
            this.chart = new Chart(this.canvas, this.options());
    }

    options() {
        const { stacked, most, units = [] } = this.what;
        const color = () => colour('--muted');
        const title = (text) => ({ display: Boolean(text), text, color });
        const grid = { color: () => colour('--rule') };
        return {
            type: 'line', data: { datasets: [] },
            options: {
                animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true,
                interaction: { mode: 'index', intersect: false },
                elements: { point: { radius: 0 }, line: { borderWidth: 2 } },
                plugins: {
                    legend: { onClick: null, position: 'bottom',
                              labels: { boxHeight: 8, color: () => colour('--text'), usePointStyle: true,
                                        pointStyleWidth: 28, generateLabels: samples } },
                    tooltip: { callbacks: { title: ([item]) => `${(-item.parsed.x).toFixed(1)} minutes ago` } },
                },
                scales: {
                    x: { type: 'linear', max: 0, grid,
                         ticks: { color, callback: (value) => (value ? `${-value} min` : 'now') } },
                    y: { beginAtZero: true, stacked: Boolean(stacked), suggestedMax: most, grid, title: title(units[0]),
                         ticks: { color, maxTicksLimit: 6 } },
                    ...(this.what.columns || []).some(([, , , axis]) => axis) ? {
                        right: { position: 'right', beginAtZero: true, suggestedMax: 100, grid: { display: false },
                                 title: title(units[1]), ticks: { color, maxTicksLimit: 6 } } } : {},
                },
            },
        };
    }

    // [name, label, scale, axis] of the existing lines.
    lines(history) {
        const { columns, prefix } = this.what;
        if (columns)
            return columns;
        const names = Array.from(history.columns.keys()).filter((name) => name.startsWith(prefix));
        const place = (name) => (classOrder.includes(name) ? classOrder.indexOf(name) : classOrder.length);
        return names.map((name) => [name, name.slice(prefix.length)]).sort((a, b) => place(a[1]) - place(b[1]));
    }

    series(history, minutes) {
        return this.lines(history).map(([name, , scale]) => (
            history.points(name, minutes, scale || this.what.scale, this.what.none)));
    }

    draw(history, minutes) {
        Object.assign(this, { history, minutes });
        const lines = this.lines(history);
        const series = this.series(history, minutes);
        this.canvas.setAttribute('aria-label', `${this.what.title}, now: ${lines.map(([, label], n) => {
            const last = series[n].length ? series[n][series[n].length - 1].y : null;
            return `${label} ${shown.number(last, this.what.digits)}`;
        }).join(', ')}`);
        this.fillTable();
        if (!this.chart)
            return;
        this.chart.data.datasets = lines.map(([, label, , axis], n) => {
            const line = colour(`--line${n % LINES + 1}`);
            return { label, yAxisID: axis || 'y', data: series[n], borderColor: line, borderDash: DASHES[n % DASHES.length],
                     backgroundColor: `${line}55`, fill: this.what.stacked ? (n ? '-1' : 'origin') : false };
        });
        if (this.what.level) {
            const [level, label] = this.what.level;
            this.chart.data.datasets.push({ label, data: [{ x: -minutes, y: level }, { x: 0, y: level }], yAxisID: 'y',
                                            borderColor: colour('--muted'), borderDash: [2, 4], borderWidth: 1 });
        }
        this.chart.options.scales.x.min = -minutes;
        this.chart.options.scales.x.ticks.stepSize = minutes < 60 ? minutes / 5 : 10;
        this.chart.update();
    }

    // One row per minute, newest first; only while the table is open.
    fillTable() {
        if (!this.details.open || !this.history)
            return;
        const lines = this.lines(this.history);
        const series = this.series(this.history, this.minutes);
        const table = document.createElement('table');
        const head = table.createTHead().insertRow();
        for (const label of ['Minutes ago', ...lines.map(([, name]) => name)]) {
            const cell = head.appendChild(document.createElement('th'));
            cell.scope = 'col';
            cell.textContent = label;
        }
        const body = table.createTBody();
        for (let minute = 0; minute < this.minutes; ++minute) {
            const row = body.appendChild(newRow(lines.length + 1));
            row.cells[0].textContent = String(minute);
            series.forEach((points, n) => {
                const known = points.filter(({ x, y }) => y !== null && x <= -minute && x > -minute - 1);
                const mean = known.length ? known.reduce((sum, { y }) => sum + y, 0) / known.length : null;
                row.cells[n + 1].textContent = shown.number(mean, this.what.digits);
            });
        }
        let frame = this.details.querySelector('.scroll');
        if (!frame) {
            frame = this.details.appendChild(document.createElement('div'));
            frame.className = 'scroll';
            frame.tabIndex = 0;
            frame.setAttribute('role', 'region');
            frame.setAttribute('aria-label', `${this.what.title}, table`);
        }
        frame.replaceChildren(table);
    }
}
