/*
 * Draws the plots of a study: lines and bars of medians with error bars from the lowest to the highest run. It is told what to
 * draw by the JSON of the page (src/study/charts.c), and knows nothing of studies.
 */
(function () {
    'use strict';

    var sections = JSON.parse(document.getElementById('data').textContent);
    var dark = window.matchMedia('(prefers-color-scheme: dark)');
    var drawn = [], printing = false;

    document.documentElement.classList.add('js');

    /* ---- colours: Okabe and Ito's, which people tell apart however they see colours ---- */

    var light = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#4d4d4d'];
    var bright = ['#56b4e9', '#e69f00', '#00b888', '#cc79a7', '#f0e442', '#ff7f3f', '#c8ced4'];
    var points = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'cross', 'crossRot'];

    function isDark() { return dark.matches && !printing; }
    function colour(i) { var all = isDark() ? bright : light; return all[i % all.length]; }
    function ink() { return isDark() ? '#e7eaed' : '#1c2024'; }
    function soft() { return isDark() ? '#a3adb6' : '#5c6670'; }
    function paper() { return isDark() ? '#16191c' : '#ffffff'; }
    function rule() { return isDark() ? '#2c3237' : '#e6e9ec'; }

    /* ---- numbers ---- */

    function text(value) {
        if (value === 0) return '0';
        var size = Math.abs(value);
        if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
        return value.toLocaleString('en-US', size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
    }

    /* What numbers up to `most` are divided by, and what they are then called. */
    function unitOf(kind, most) {
        if (kind === 'share') return { by: 0.01, name: '%' };
        if (kind === 'seconds') return most >= 7200 ? { by: 3600, name: 'h' } : most >= 600 ? { by: 60, name: 'min' } : most < 0.5 ? { by: 1e-3, name: 'ms' } : { by: 1, name: 's' };
        if (kind === 'count' && most >= 1e6) return { by: 1e6, name: 'million' };
        if (kind === 'count' && most >= 1e4) return { by: 1e3, name: 'thousand' };
        if (kind === 'bytes' || kind === 'rate') {
            var names = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], i = 0;
            for (; most >= 1000 && i + 1 < names.length; i++) most /= 1000;
            return { by: Math.pow(1000, i), name: names[i] + (kind === 'rate' ? '/s' : '') };
        }
        return { by: 1, name: '' };
    }

    function highest(chart, place) {
        var most = 0;
        chart.series.forEach(function (set) {
            set.points.forEach(function (point) { most = Math.max(most, point[place] || 0); });
        });
        return most;
    }

    function titled(name, unit) { return unit ? name + ' (' + unit + ')' : name; }

    /* ---- error bars ---- */

    var errorBars = {
        id: 'errorBars',
        afterDatasetsDraw: function (chart) {
            var context = chart.ctx, scale = chart.scales.y;
            chart.data.datasets.forEach(function (set, i) {
                if (!chart.isDatasetVisible(i)) return;
                chart.getDatasetMeta(i).data.forEach(function (element, j) {
                    var point = set.data[j];
                    if (!point || !(point.high > point.low)) return;
                    var low = scale.getPixelForValue(point.low), high = scale.getPixelForValue(point.high);
                    context.save();
                    context.strokeStyle = set.borderDash ? set.borderColor : ink();
                    context.lineWidth = 1.5;
                    context.beginPath();
                    context.moveTo(element.x, low);
                    context.lineTo(element.x, high);
                    [low, high].forEach(function (y) {
                        context.moveTo(element.x - 4, y);
                        context.lineTo(element.x + 4, y);
                    });
                    context.stroke();
                    context.restore();
                });
            });
        }
    };

    /* ---- lines ---- */

    function scaled(chart, set, x, y) {
        return set.points.map(function (point) {
            return {
                x: chart.type === 'bar' ? point[0] : point[0] / x.by, y: point[1] / y.by,
                low: point.length > 2 ? point[2] / y.by : null, high: point.length > 2 ? point[3] / y.by : null
            };
        });
    }

    var dashes = { ideal: [7, 5], published: [2, 3], predicted: [4, 2] };

    function lineSet(set, data, i) {
        var aside = set.style === 'ideal' || set.style === 'published';
        var own = aside ? soft() : colour(i), curve = set.style === 'curve', predicted = set.style === 'predicted';
        return {
            label: set.label, data: data, borderColor: own, backgroundColor: predicted ? paper() : own, tension: 0, clip: 8,
            borderWidth: aside || curve || predicted ? 1.4 : 2, borderDash: dashes[set.style] || (i < light.length ? [] : [9, 3]),
            pointRadius: set.style === 'ideal' || (curve && data.length > 40) ? 0 : curve ? 2 : 4,
            pointStyle: set.style === 'published' ? 'rectRot' : points[i % points.length], pointHoverRadius: 5
        };
    }

    /* A bar that does not begin at 0 tells a lie: where that would be, there are points. */
    function barSet(set, data, i, zero) {
        if (set.style === 'predicted')
            return { type: 'line', showLine: false, label: set.label, data: data, backgroundColor: paper(), borderColor: ink(), borderWidth: 1.6, pointStyle: 'rectRot', pointRadius: 6, pointHoverRadius: 7, order: -1 };
        if (!zero)
            return { type: 'line', showLine: false, label: set.label, data: data, backgroundColor: colour(i), borderColor: colour(i), pointRadius: 5, pointHoverRadius: 6 };
        return { label: set.label, data: data, backgroundColor: colour(i), maxBarThickness: 54, borderColor: colour(i) };
    }

    /* Ticks where something was measured: nobody has 1.5 workers. */
    function measuredPlaces(chart) {
        var seen = {};
        chart.series.forEach(function (set) { set.points.forEach(function (point) { seen[point[0]] = true; }); });
        return Object.keys(seen).map(Number).sort(function (a, b) { return a - b; });
    }

    /* As many digits as tell two ticks apart. */
    function tickText(value, place, ticks) {
        var step = ticks.length > 1 ? Math.abs(ticks[1].value - ticks[0].value) : 0;
        if (!step || step >= 1 || step < 1e-9) return text(value);
        return value.toLocaleString('en-US', { maximumFractionDigits: Math.ceil(-Math.log10(step) - 1e-9) + 1 });
    }

    function axis(title, more) {
        return Object.assign({
            title: { display: !!title, text: title, color: soft() },
            ticks: { color: soft(), maxRotation: 0, autoSkipPadding: 12, callback: tickText },
            grid: { color: rule(), drawBorder: false }
        }, more);
    }

    function xAxis(chart, unit) {
        var places = measuredPlaces(chart);
        if (chart.type === 'bar')
            return axis(chart.x, {
                type: 'category', grid: { display: false, drawBorder: false },
                ticks: { color: ink(), maxRotation: 60, autoSkip: false }
            });
        if (places.length > 12 || chart.xunit === 'seconds') /* a curve */
            return axis(titled(chart.x, unit.name), { type: 'linear', min: 0, grace: 0 });
        var first = places[0], last = places[places.length - 1], room = (last - first) * 0.05 || 0.5;
        return axis(chart.x, {
            type: chart.log ? 'logarithmic' : 'linear', min: chart.log ? first * 0.8 : first - room, max: chart.log ? last * 1.25 : last + room,
            afterBuildTicks: function (scale) { scale.ticks = places.map(function (value) { return { value: value }; }); },
            ticks: { color: soft(), maxRotation: 0, autoSkip: false, callback: function (value) { return text(value); } }
        });
    }

    /* A loss begins high, and what matters lies far below: the first twentieth of a curve may leave the plot. */
    function curveTop(chart) {
        var losses = [];
        chart.series.forEach(function (set) {
            if (set.style === 'curve') set.points.slice(Math.ceil(set.points.length / 20)).forEach(function (point) { losses.push(point[1]); });
        });
        if (!losses.length) return undefined;
        var top = Math.max.apply(null, losses), step = Math.pow(10, Math.floor(Math.log10(top)) - 1);
        return Math.ceil(top / step) * step;
    }

    function yAxis(chart, y, zero) {
        var top = curveTop(chart);
        if (top !== undefined) return axis(titled(chart.y, y.name), { max: top / y.by, grace: 0 });
        return axis(titled(chart.y, y.name), { beginAtZero: zero, grace: zero ? 0 : '10%', suggestedMax: highest(chart, 3) / y.by || undefined });
    }

    function usual(set) { return set.style === '' || set.style === 'curve'; }

    function legendLabels(chart) {
        return Chart.defaults.plugins.legend.labels.generateLabels(chart).map(function (item) {
            var set = chart.data.datasets[item.datasetIndex];
            return Object.assign(item, { lineDash: set.borderDash, strokeStyle: set.borderColor, lineWidth: 2, pointStyle: 'line' });
        });
    }

    function settings(chart) {
        var x = unitOf(chart.xunit, chart.xunit === 'seconds' ? highest(chart, 0) : 0), y = unitOf(chart.unit, Math.max(highest(chart, 1), highest(chart, 3))), next = 0;
        var isBar = chart.type === 'bar', zero = !/loss|accuracy/i.test(chart.y);
        var sets = chart.series.map(function (set) {
            var i = usual(set) ? next++ : Math.max(next - 1, 0); /* what was predicted stands behind what was measured */
            return (isBar ? barSet : lineSet)(set, scaled(chart, set, x, y), i, zero);
        });
        var labels = { color: ink(), padding: 10, sort: function (a, b) { return a.datasetIndex - b.datasetIndex; } };
        Object.assign(labels, isBar ? { boxWidth: 14, boxHeight: 10 } : { usePointStyle: true, pointStyleWidth: 30, generateLabels: legendLabels });
        return {
            type: isBar ? 'bar' : 'line', plugins: [errorBars],
            data: { labels: chart.labels, datasets: sets },
            options: {
                animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true,
                layout: { padding: { right: 10, top: 4 } },
                interaction: { mode: 'nearest', axis: 'x', intersect: false },
                scales: { x: xAxis(chart, x), y: yAxis(chart, y, zero) },
                plugins: {
                    legend: { display: sets.length > 1, position: 'bottom', align: 'start', labels: labels },
                    tooltip: {
                        callbacks: {
                            title: function (items) { return items.length ? (isBar ? items[0].label : chart.x + ' ' + text(items[0].parsed.x)) : ''; },
                            label: function (item) {
                                var point = item.raw, range = point.high > point.low ? ' (' + text(point.low) + ' to ' + text(point.high) + ')' : '';
                                return ' ' + item.dataset.label + ': ' + text(point.y) + (y.name ? ' ' + y.name : '') + range;
                            }
                        }
                    }
                }
            }
        };
    }

    /* ---- all of them ---- */

    /* A legend of many lines takes nothing away from the plot. */
    function makeRoom(canvas, chart) {
        var box = canvas.parentNode, more = chart.legend && chart.options.plugins.legend.display ? wanted(chart, box.clientWidth) - 34 : 0;
        if (more <= 0) return;
        if (!box.dataset.height) box.dataset.height = box.clientHeight;
        box.style.height = Number(box.dataset.height) + more + 'px';
        chart.options.plugins.legend.maxHeight = more + 40;
        chart.resize();
    }

    /* Pixels of its rows, about: a sign takes 50 and a letter 6.6. */
    function wanted(chart, width) {
        var rows = 1, used = 0;
        chart.data.datasets.forEach(function (set) {
            var own = 50 + 6.6 * set.label.length;
            if (used && used + own > width) { rows++; used = 0; }
            used += own;
        });
        return rows * 22;
    }

    function draw() {
        drawn.forEach(function (each) { each.destroy(); });
        drawn = [];
        document.querySelectorAll('canvas[data-chart]').forEach(function (canvas) {
            var chart = sections[Number(canvas.dataset.section)][Number(canvas.dataset.chart)];
            drawn.push(new Chart(canvas, settings(chart)));
            makeRoom(canvas, drawn[drawn.length - 1]);
        });
    }

    dark.addEventListener('change', draw);
    window.addEventListener('beforeprint', function () { printing = true; draw(); });
    window.addEventListener('afterprint', function () { printing = false; draw(); });
    draw();
    document.documentElement.dataset.drawn = String(performance.now());
})();
