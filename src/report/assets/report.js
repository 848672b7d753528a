/*
 * Draws the charts of a report. Each is a <canvas data-chart="NAME" data-run="N">; N is -1 for all runs over each other. What
 * they show is in the JSON of #data (src/report/data.c). Nothing is loaded, and nothing is written into the page but canvases.
 */
(function () {
    'use strict';

    var data = JSON.parse(document.getElementById('data').textContent);
    var root = document.documentElement;
    var dark = window.matchMedia('(prefers-color-scheme: dark)');
    var printing = false;
    var axis = 'step'; /* of curves: step or t */
    var drawn = new Map(); /* canvas -> Chart */

    root.classList.add('js');

    /* ---- colours: Okabe and Ito's, which people tell apart however they see colours ---- */

    var light = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#4d4d4d'];
    var bright = ['#56b4e9', '#e69f00', '#00b888', '#cc79a7', '#f0e442', '#ff7f3f', '#c8ced4'];
    var dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

    function isDark() { return dark.matches && !printing; }
    function colour(i) { var all = isDark() ? bright : light; return all[i % all.length]; }
    function dash(i) { return dashes[Math.floor(i / light.length) % dashes.length]; }
    function ink() { return isDark() ? '#e7eaed' : '#1c2024'; }
    function soft() { return isDark() ? '#a3adb6' : '#5c6670'; }
    function rule() { return isDark() ? '#2c3237' : '#e6e9ec'; }
    function splitColour(i) {
        return (isDark() ? ['#e69f00', '#3f9bdc', '#009e73', '#cc79a7', '#5d666e']
                         : ['#e69f00', '#0072b2', '#009e73', '#cc79a7', '#b8bec4'])[i];
    }
    var splitNames = ['data', 'compute', 'communicate', 'still', 'wait'];

    /* ---- numbers ---- */

    function text(value) {
        if (value === 0) return '0';
        var size = Math.abs(value);
        if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
        return value.toLocaleString('en-US', size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
    }

    /* What numbers up to `most` are divided by, and what they are then called. */
    function bytesUnit(most, per) {
        var names = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], i = 0;
        for (; most >= 1000 && i + 1 < names.length; i++) most /= 1000;
        return { by: Math.pow(1000, i), name: names[i] + per };
    }

    function timeUnit(most) {
        return most > 4 * 3600 ? { by: 3600, name: 'h' } : most > 20 * 60 ? { by: 60, name: 'min' } : { by: 1, name: 's' };
    }

    function highest(lines) {
        var most = 0;
        lines.forEach(function (line) { line.y.forEach(function (y) { if (y > most) most = y; }); });
        return most;
    }

    function furthest(lines, key) {
        var most = 0;
        lines.forEach(function (line) { var x = line[key]; if (x.length && x[x.length - 1] > most) most = x[x.length - 1]; });
        return most;
    }

    /* ---- restarts and checkpoints, on whatever axis has them ---- */

    var marksPlugin = {
        id: 'marks',
        afterDatasetsDraw: function (chart, args, options) {
            var area = chart.chartArea, scale = chart.scales.x, context = chart.ctx;
            (options.list || []).forEach(function (mark) {
                var x = scale.getPixelForValue(mark.x);
                if (!(x >= area.left - 1 && x <= area.right + 1)) return;
                context.save();
                context.beginPath();
                context.strokeStyle = mark.colour;
                context.lineWidth = mark.restart ? 1.5 : 1;
                if (mark.restart) context.setLineDash([5, 4]);
                context.moveTo(x, area.bottom);
                context.lineTo(x, mark.restart ? area.top : area.bottom - 7);
                context.stroke();
                context.restore();
            });
        }
    };

    /* Of several runs, restarts in the colours of their lines: checkpoints would be too many. */
    function marksOf(runs, key, by) {
        var marks = [];
        runs.forEach(function (run, i) {
            run.marks.forEach(function (mark) {
                var restart = mark[0] === 1, own = restart ? (isDark() ? '#ff7f3f' : '#d55e00') : soft();
                if (!restart && runs.length > 1) return;
                marks.push({ restart: restart, x: (key === 'step' ? mark[1] : mark[2]) / by, colour: runs.length > 1 ? colour(i) : own });
            });
        });
        return marks;
    }

    /* ---- what charts have in common ---- */

    function scale(title, more) {
        return Object.assign({
            title: { display: !!title, text: title, color: soft() },
            ticks: { color: soft(), maxRotation: 0, autoSkipPadding: 14, includeBounds: false, callback: function (value) { return text(value); } },
            grid: { color: rule(), drawBorder: false }
        }, more);
    }

    /* From 0 to where the last point is. */
    function span(most) { return { type: 'linear', min: 0, max: most > 0 ? most : 1 }; }

    /* A legend shows lines as they are drawn, dashes and all. */
    function lineLabels(chart) {
        return Chart.defaults.plugins.legend.labels.generateLabels(chart).map(function (item) {
            var set = chart.data.datasets[item.datasetIndex];
            return Object.assign(item, { lineDash: set.borderDash, strokeStyle: set.borderColor, lineWidth: 2, pointStyle: 'line' });
        });
    }

    function options(o) {
        var labels = { color: ink(), boxWidth: 26, boxHeight: 8, padding: 10 };
        if (o.lines) Object.assign(labels, { usePointStyle: true, pointStyleWidth: 26, generateLabels: lineLabels });
        return {
            animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true,
            layout: { padding: { right: 8 } },
            interaction: { mode: o.mode || 'nearest', axis: o.axis || 'x', intersect: false },
            scales: { x: o.x, y: o.y },
            plugins: {
                legend: {
                    display: !!o.legend, position: 'bottom', align: 'start', labels: labels
                },
                tooltip: { callbacks: o.tooltip || {} },
                marks: { list: o.marks || [] }
            }
        };
    }

    function line(label, points, i, more) {
        return Object.assign({
            label: label, data: points, borderColor: colour(i), backgroundColor: colour(i), borderDash: dash(i),
            borderWidth: points.length > 200 ? 1.2 : 1.6, pointRadius: points.length < 3 ? 4 : points.length <= 40 ? 2 : 0, pointHoverRadius: 4, tension: 0, clip: 5
        }, more);
    }

    function pairs(line, key, byX, byY) {
        return line[key].map(function (x, i) { return { x: x / byX, y: line.y[i] / byY }; });
    }

    /* Nothing was measured between the end of a process and the next start: no line leads across a restart. */
    function broken(points, marks) {
        var restarts = marks.filter(function (mark) { return mark.restart; }).map(function (mark) { return mark.x; }), next = 0, out = [];
        points.forEach(function (point, i) {
            while (next < restarts.length && restarts[next] < (i ? points[i - 1].x : -1)) next++;
            if (i && next < restarts.length && restarts[next] <= point.x) out.push({ x: restarts[next], y: NaN });
            out.push(point);
        });
        return out;
    }

    function tipTitle(name, unit) {
        return function (items) { return items.length ? name + ' ' + text(items[0].parsed.x) + (unit ? ' ' + unit : '') : ''; };
    }

    function tipLabel(unit) {
        return function (item) { return ' ' + item.dataset.label + ': ' + text(item.parsed.y) + (unit ? ' ' + unit : ''); };
    }

    /* ---- curves, against steps or time ---- */

    function curves(runs, names, title, more) {
        var lines = [];
        runs.forEach(function (run) { names.forEach(function (name) { lines.push(run[name.key]); }); });
        var unit = axis === 't' ? timeUnit(furthest(lines, 't')) : { by: 1, name: '' };
        var sets = [];
        runs.forEach(function (run, i) {
            names.forEach(function (name, j) {
                var points = pairs(run[name.key], axis, unit.by, 1);
                if (axis === 't' && !j) points = broken(points, marksOf([run], 't', unit.by));
                var label = runs.length === 1 ? name.label : names.length === 1 ? run.name : run.name + ', ' + name.label;
                if (!points.length) return;
                sets.push(line(label, points, runs.length === 1 ? j : i, j ? { borderDash: [6, 4], pointRadius: 3, pointStyle: 'rectRot' } : {}));
            });
        });
        if (!sets.length) return null;
        return {
            type: 'line', data: { datasets: sets },
            options: options({
                x: scale(axis === 't' ? 'training time (' + unit.name + ')' : 'steps', span(furthest(lines, axis) / unit.by)),
                y: scale(title, more), legend: sets.length > 1 || runs.length > 1, lines: true,
                marks: marksOf(runs, axis, unit.by),
                tooltip: { title: tipTitle(axis === 't' ? 'after' : 'step', unit.name), label: tipLabel('') }
            })
        };
    }

    /* ---- roles over time ---- */

    function resource(run, key, title, unitOf) {
        var roles = run.roles.filter(function (role) { return role[key] && role[key].t.length; });
        var lines = roles.map(function (role) { return role[key]; });
        var most = highest(lines), unit = unitOf(most), time = timeUnit(furthest(lines, 't'));
        if (!lines.length) return null;
        if (most === 0) return 'none';
        return {
            type: 'line',
            data: {
                datasets: roles.map(function (role, i) {
                    var label = key === 'interface' ? role.host || 'host' : role.name;
                    return line(label, broken(pairs(role[key], 't', time.by, unit.by), marksOf([run], 't', time.by)), i,
                        role.others ? { borderColor: soft(), backgroundColor: soft(), borderDash: [2, 3], borderWidth: 2 } : {});
                })
            },
            options: options({
                x: scale('training time (' + time.name + ')', span(furthest(lines, 't') / time.by)),
                y: scale(title + ' (' + unit.name + ')', { beginAtZero: true }), legend: true, lines: true,
                marks: marksOf([run], 't', time.by),
                tooltip: { title: tipTitle('after', time.name), label: tipLabel(unit.name) }
            })
        };
    }

    function split(run) {
        if (!run.roles.length) return null;
        return {
            type: 'bar',
            data: {
                labels: run.roles.map(function (role) { return role.name; }),
                datasets: splitNames.map(function (name, i) {
                    return {
                        label: name, backgroundColor: splitColour(i), barPercentage: 0.85, categoryPercentage: 0.9,
                        data: run.roles.map(function (role, j) { return { x: 100 * role.split[i], y: j }; })
                    };
                })
            },
            options: Object.assign(options({
                mode: 'nearest', axis: 'y',
                x: scale('share of training time (%)', { stacked: true, min: 0, max: 100 }),
                y: scale('', { stacked: true, type: 'category', grid: { display: false, drawBorder: false },
                    ticks: { color: ink(), autoSkip: false } }),
                tooltip: { label: function (item) { return ' ' + item.dataset.label + ': ' + text(item.parsed.x) + ' %'; } }
            }), { indexAxis: 'y' })
        };
    }

    function splits(run, place) {
        var role = run.roles[place], list = role.splits;
        if (!list || list.length < 2) return null;
        var time = timeUnit(list[list.length - 1][0]);
        return {
            type: 'line',
            data: {
                datasets: splitNames.map(function (name, i) {
                    var points = list.map(function (each) { return { x: each[0] / time.by, y: 100 * each[1][i] }; });
                    /* A stretch ends where it is told of, and the first begins at 0. */
                    return {
                        label: name, backgroundColor: splitColour(i), borderWidth: 0, pointRadius: 0, stepped: 'after',
                        fill: i ? '-1' : 'origin', data: [{ x: 0, y: points[0].y }].concat(points)
                    };
                })
            },
            options: options({
                mode: 'index',
                x: scale('training time (' + time.name + ')', span(list[list.length - 1][0] / time.by)),
                y: scale('%', { stacked: true, min: 0, max: 100, ticks: { color: soft(), stepSize: 50 } }),
                marks: marksOf([run], 't', time.by),
                tooltip: { title: tipTitle('after', time.name), label: tipLabel('%') }
            })
        };
    }

    /* ---- bars ---- */

    function bars(labels, sets, xTitle, yTitle, unit, more) {
        return {
            type: 'bar',
            data: {
                labels: labels,
                datasets: sets.map(function (set, i) {
                    return { label: set.label, backgroundColor: colour(i), maxBarThickness: 46,
                        data: set.values.map(function (y, x) { return { x: x, y: y }; }) };
                })
            },
            options: options(Object.assign({
                mode: 'index',
                x: scale(xTitle, { type: 'category', stacked: true, grid: { display: false, drawBorder: false },
                    ticks: { color: ink(), maxRotation: xTitle ? 0 : 60, autoSkipPadding: 8 } }),
                y: scale(yTitle, { beginAtZero: true, stacked: true }), legend: sets.length > 1,
                tooltip: { label: tipLabel(unit) }
            }, more))
        };
    }

    function servers(run) {
        if (!run.servers.length) return null;
        var most = 0;
        run.servers.forEach(function (server) { most = Math.max(most, server[2] + server[3]); });
        if (most === 0) return 'none';
        var unit = bytesUnit(most, '');
        return bars(run.servers.map(function (server) { return server[0]; }), [
            { label: 'received', values: run.servers.map(function (server) { return server[2] / unit.by; }) },
            { label: 'sent', values: run.servers.map(function (server) { return server[3] / unit.by; }) }
        ], '', unit.name, unit.name);
    }

    function shares(run) {
        var all = run.shares.reduce(function (sum, each) { return sum + each[1]; }, 0);
        if (!all) return null;
        return bars(run.shares.map(function (each) { return each[0]; }), [
            { label: 'share of the rows', values: run.shares.map(function (each) { return 100 * each[1] / all; }) }
        ], '', '% of the rows', '%');
    }

    function staleness(run) {
        if (!run.staleness.length) return null;
        return bars(run.staleness.map(function (each, i) { return String(i); }), [
            { label: 'pushes', values: run.staleness }
        ], 'pushes applied since', 'pushes', '');
    }

    /* ---- calibration and ROC ---- */

    function diagonal(most, label) {
        return line(label, [{ x: 0, y: 0 }, { x: most, y: most }], 0,
            { borderColor: soft(), backgroundColor: soft(), borderDash: [3, 4], borderWidth: 1, pointRadius: 0 });
    }

    function square(runs, key, most, label, xTitle, yTitle, radius) {
        var sets = [diagonal(most, label)];
        runs.forEach(function (run, i) {
            if (!run[key].length) return;
            sets.push(line(runs.length === 1 ? 'test rows' : run.name,
                run[key].map(function (each) { return { x: each[0], y: each[1] }; }), i, { pointRadius: radius }));
        });
        if (sets.length === 1) return null;
        return {
            type: 'line', data: { datasets: sets },
            options: options({
                x: scale(xTitle, { type: 'linear', min: 0, max: most }), y: scale(yTitle, { min: 0, max: most }),
                legend: true, lines: true,
                tooltip: { title: function (items) { return items.length ? xTitle + ' ' + text(items[0].parsed.x) : ''; }, label: tipLabel('') }
            })
        };
    }

    function calibration(runs) {
        var most = 0;
        runs.forEach(function (run) { run.bins.forEach(function (bin) { most = Math.max(most, bin[0], bin[1]); }); });
        return square(runs, 'bins', Math.min(1, Math.ceil(most * 11) / 10), 'as predicted', 'predicted probability', 'share of positive rows', 3);
    }

    /* ---- which chart a canvas is for ---- */

    function configOf(canvas) {
        var name = canvas.dataset.chart.split(':'), index = Number(canvas.dataset.run);
        var runs = index < 0 ? data.runs : [data.runs[index]], run = runs[0];
        switch (name[0]) {
        case 'loss': return curves(runs, [{ key: 'loss', label: 'training' }, { key: 'test_loss', label: run.scored + ' rows' }], 'loss');
        case 'auc': return curves(runs, [{ key: 'auc', label: 'AUC' }], 'AUC');
        case 'accuracy': return curves(runs, [{ key: 'accuracy', label: 'accuracy' }], 'accuracy');
        case 'speed': return curves(runs, [{ key: 'speed', label: 'rows a second' }], 'rows a second', { beginAtZero: true });
        case 'calibration': return calibration(runs);
        case 'roc': return square(runs, 'roc', 1, 'guessing', 'false positives, of negative rows', 'true positives, of positive rows', 0);
        case 'split': return split(run);
        case 'splits': return splits(run, Number(name[1]));
        case 'cpu': return resource(run, 'cpu', 'CPU', function () { return { by: 1, name: 'cores' }; });
        case 'memory': return resource(run, 'memory', 'memory', function (most) { return bytesUnit(most, ''); });
        case 'network': return resource(run, 'network', 'traffic', function (most) { return bytesUnit(most, '/s'); });
        case 'interface': return resource(run, 'interface', 'traffic', function (most) { return bytesUnit(most, '/s'); });
        case 'disk': return resource(run, 'disk', 'traffic', function (most) { return bytesUnit(most, '/s'); });
        case 'rows': return resource(run, 'rows', 'rows', function () { return { by: 1, name: 'a second' }; });
        case 'work': return resource(run, 'work', 'work', function (most) {
            return most < 1e-3 ? { by: 1e-6, name: '\u00b5s a row' } : { by: 1e-3, name: 'ms a row' };
        });
        case 'servers': return servers(run);
        case 'shares': return shares(run);
        case 'staleness': return staleness(run);
        }
        return null;
    }

    /* ---- drawing ---- */

    /* Room for the lines of a legend, and for the bars of many roles. */
    function heightOf(plot, config) {
        var base = plot.closest('.small') ? 130 : 270;
        if (config.options.indexAxis === 'y') return 60 + 30 * config.data.labels.length;
        if (!config.options.plugins.legend.display) return base;
        var width = 0, lines = 1, room = plot.clientWidth - 20;
        config.data.datasets.forEach(function (set) {
            var own = 52 + 7 * set.label.length;
            if (width > 0 && width + own > room) { lines++; width = 0; }
            width += own;
        });
        return base + 22 * (lines - 1);
    }

    function say(plot, words) {
        plot.classList.add('empty');
        plot.textContent = words;
    }

    function draw(canvas) {
        var plot = canvas.parentNode, config = configOf(canvas);
        if (drawn.has(canvas)) drawn.get(canvas).destroy();
        drawn.delete(canvas);
        if (!config) { say(plot, 'Nothing was recorded.'); return; }
        if (config === 'none') { say(plot, 'None.'); return; }
        config.plugins = [marksPlugin];
        plot.style.height = heightOf(plot, config) + 'px';
        drawn.set(canvas, new Chart(canvas, config));
    }

    function isFolded(canvas) { return !!canvas.closest('details.run:not([open])'); }

    function drawAll(which) {
        document.querySelectorAll('canvas').forEach(function (canvas) { if (!isFolded(canvas) && (!which || which(canvas))) draw(canvas); });
    }

    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12;
    drawAll();
    root.dataset.charts = drawn.size;
    root.dataset.drawn = Math.round(performance.now());

    document.querySelectorAll('input[name=axis]').forEach(function (input) {
        input.addEventListener('change', function () {
            axis = input.value;
            drawAll(function (canvas) { return ['loss', 'auc', 'accuracy', 'speed'].indexOf(canvas.dataset.chart) >= 0; });
        });
    });
    document.querySelectorAll('details.run').forEach(function (fold) {
        fold.addEventListener('toggle', function () {
            if (fold.open) fold.querySelectorAll('canvas').forEach(function (canvas) { if (!drawn.has(canvas)) draw(canvas); });
        });
    });
    dark.addEventListener('change', function () { drawAll(); });
    window.addEventListener('beforeprint', function () { printing = true; drawAll(); });
    window.addEventListener('afterprint', function () { printing = false; drawAll(); });
}());
