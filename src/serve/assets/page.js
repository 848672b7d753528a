"use strict";
/*
 * The live page. The server sends "series" once, the course so far, and "now" each second; all that is shown is made of
 * these two. Texts become text nodes, never markup.
 */
(() => {
    const POINTS_MAX = 600;   // of a curve; then every second one goes
    const ROLES_MAX = 10;     // curves in a chart; more roles are shown by kind
    const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"]; // told apart by all eyes
    const DASHES = [[], [7, 4], [2, 3]];
    const element = id => document.getElementById(id);

    // ---- texts ----

    const isNumber = value => typeof value === "number" && Number.isFinite(value);
    const whole = value => isNumber(value) ? Math.round(value).toLocaleString("en-US") : "–";

    function scaled(value, step, units) {
        if (!isNumber(value))
            return "–";
        let unit = 0;
        while (unit + 1 < units.length && Math.abs(value) >= step * 0.9995) {
            value /= step;
            unit++;
        }
        const digits = Math.abs(value) >= 99.95 || value === Math.floor(value) ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
        return value.toFixed(digits) + units[unit];
    }

    const count = value => scaled(value, 1000, ["", " k", " M", " G", " T"]);
    const bytes = value => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
    const percent = value => isNumber(value) ? (100 * value).toFixed(0) + " %" : "–";
    const score = value => isNumber(value) ? value.toFixed(5) : "–";

    function time(seconds) {
        if (!isNumber(seconds))
            return "–";
        const all = Math.round(seconds), two = number => String(number).padStart(2, "0");
        if (all < 60)
            return all + " s";
        if (all < 3600)
            return Math.floor(all / 60) + ":" + two(all % 60) + " min";
        return Math.floor(all / 3600).toLocaleString("en-US") + ":" + two(Math.floor(all / 60) % 60) + ":" + two(all % 60) + " h";
    }

    function make(tag, text, name) {
        const made = document.createElement(tag);
        if (text !== undefined)
            made.textContent = text;
        if (name)
            made.className = name;
        return made;
    }

    // ---- charts ----

    const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    let starts = []; // when the job was started again

    const startLines = {
        id: "startLines",
        afterDatasetsDraw(chart) {
            if (!chart.options.showsTime)
                return;
            const { ctx, chartArea: area, scales: { x } } = chart;
            ctx.save();
            ctx.setLineDash([4, 4]);
            ctx.strokeStyle = colour("--soft");
            for (const at of starts.slice(1)) {
                const place = x.getPixelForValue(at);
                if (place < area.left || place > area.right)
                    continue;
                ctx.beginPath();
                ctx.moveTo(place, area.top);
                ctx.lineTo(place, area.bottom);
                ctx.stroke();
            }
            ctx.restore();
        },
    };

    function axis(title, format) {
        return {
            type: "linear",
            title: { display: true, text: title, color: colour("--soft") },
            ticks: { color: colour("--soft"), callback: format, maxTicksLimit: 7, maxRotation: 0, autoSkipPadding: 14 },
            grid: { color: colour("--line") },
        };
    }

    function makeChart(title, xTitle, xFormat, yTitle, yFormat, more) {
        const box = make("figure", undefined, "chart"), plot = make("div", undefined, "plot"), canvas = make("canvas");
        const head = make("h2", title);
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", title + ": " + yTitle + " over " + xTitle);
        plot.append(canvas);
        box.append(head, plot);
        element("charts").append(box);
        const chart = new Chart(canvas, {
            type: "line",
            data: { datasets: [] },
            plugins: [startLines],
            options: {
                animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
                showsTime: xFormat === time,
                interaction: { mode: "nearest", axis: "x", intersect: false },
                datasets: { line: { clip: 4 } },
                elements: { point: { radius: 0, hitRadius: 6 }, line: { borderWidth: 2, tension: 0 } },
                scales: { x: Object.assign(axis(xTitle, xFormat), xFormat === time ? { bounds: "data", afterBuildTicks: timeTicks } : {}), y: Object.assign(axis(yTitle, yFormat), more) },
                plugins: {
                    legend: { position: "bottom", labels: { color: colour("--ink"), boxWidth: 24, boxHeight: 2 } },
                    tooltip: {
                        callbacks: {
                            title: items => items.length ? xFormat(items[0].parsed.x) : "",
                            label: item => " " + item.dataset.label + ": " + yFormat(item.parsed.y),
                        },
                    },
                },
            },
        });
        return { chart, head, title };
    }

    function recolour(chart) {
        for (const scale of Object.values(chart.options.scales)) {
            scale.title.color = scale.ticks.color = colour("--soft");
            scale.grid.color = colour("--line");
        }
        chart.options.plugins.legend.labels.color = colour("--ink");
        chart.update("none");
    }

    function curve(chart, label, index) {
        let found = chart.data.datasets.find(each => each.label === label);
        if (!found) {
            const tone = COLOURS[index % COLOURS.length];
            found = {
                label, data: [], borderColor: tone, backgroundColor: tone,
                borderDash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
            };
            chart.data.datasets.push(found);
        }
        return found;
    }

    function addPoint(curveOf, x, y) {
        const points = curveOf.data, last = points[points.length - 1];
        if (!isNumber(x) || !isNumber(y) || (last && last.x >= x))
            return;
        points.push({ x, y });
        if (points.length > POINTS_MAX)
            curveOf.data = points.filter((point, i) => i % 2 === 0 || i + 1 === points.length);
    }

    // Bytes are told in powers of two, and so are the lines of their grid.
    function binaryTicks(scale) {
        const most = Math.max(scale.max, 1), step = 2 ** Math.ceil(Math.log2(most / 5)), last = Math.ceil(most / step);
        scale.ticks = Array.from({ length: last + 1 }, (_, i) => ({ value: i * step }));
        scale.min = 0;
        scale.max = last * step;
    }

    // Seconds are told in minutes and hours, and so are theirs.
    function timeTicks(scale) {
        const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400], span = scale.max - scale.min;
        const step = steps.find(each => span / each <= 6) || 86400 * Math.ceil(span / 6 / 86400), first = Math.ceil(scale.min / step);
        scale.ticks = [];
        for (let i = first; i * step <= scale.max; i++)
            scale.ticks.push({ value: i * step });
    }

    const BY_TIME = "training time", fromZero = { beginAtZero: true }, share = { min: 0, max: 1 };
    const inBytes = { beginAtZero: true, bounds: "data", afterBuildTicks: binaryTicks };
    const rate = value => bytes(value) + "/s";
    const loss = makeChart("Loss", "steps", count, "loss", value => String(Number(value.toPrecision(4))), {});
    // What is drawn of each role: where it stands in a point of "series", and how it is found in "now".
    const CHARTS = [
        { at: 1, add: true, of: role => role.rows > 0 ? role.rows_per_s : null,
          ...makeChart("Rows", BY_TIME, time, "rows per second", count, fromZero) },
        { at: 2, of: role => role.cores, ...makeChart("Processors", BY_TIME, time, "cores in use", count, fromZero) },
        { at: 3, of: role => role.sent_per_s + role.received_per_s,
          ...makeChart("Exchange", BY_TIME, time, "bytes per second", rate, inBytes) },
        { at: 4, of: role => role.wait, ...makeChart("Waiting", BY_TIME, time, "share of the time", percent, share) },
        { at: 5, of: role => role.rss_bytes, ...makeChart("Memory", BY_TIME, time, "resident bytes", bytes, inBytes) },
    ];

    // ---- roles in charts: each, or by kind if they are many ----

    let lines = []; // {label, roles}

    function kindOf(name) {
        return name.startsWith("ps") ? "servers" : name === "evaluator" ? "evaluator" : "workers";
    }

    function setLines(names) {
        const before = lines.map(line => line.label).join();
        if (names.length <= ROLES_MAX) {
            lines = names.map(name => ({ label: name, roles: [name] }));
        } else {
            lines = ["workers", "servers", "evaluator"].map(kind => ({ label: kind, roles: names.filter(name => kindOf(name) === kind) }))
                .filter(line => line.roles.length > 0);
        }
        const many = names.length > ROLES_MAX;
        for (const each of CHARTS)
            each.head.textContent = each.title + (many ? each.add ? ", all of a kind" : ", mean of a kind" : "");
        return before !== lines.map(line => line.label).join();
    }

    // One value of several roles: their sum, or their mean.
    function together(values, adds) {
        const known = values.filter(isNumber);
        if (known.length === 0)
            return null;
        const sum = known.reduce((a, b) => a + b, 0);
        return adds ? sum : sum / known.length;
    }

    function takeSeries(series) {
        starts = series.starts;
        loss.chart.data.datasets = [];
        for (const [, step, value] of series.loss)
            addPoint(curve(loss.chart, "training", 0), step, value);
        for (const [, step, logloss] of series.validation || series.test)
            addScore(series.validation ? "validation" : "test", step, logloss);
        setLines(series.roles.map(role => role.role));
        const points = new Map(series.roles.map(role => [role.role, role.points]));
        for (const each of CHARTS) {
            each.chart.data.datasets = [];
            lines.forEach((line, i) => {
                const longest = Math.max(...line.roles.map(name => points.get(name).length));
                for (let k = 0; k < longest; k++) {
                    const row = line.roles.map(name => points.get(name)[k]).filter(Boolean);
                    const value = together(row.map(point => point[each.at]), each.add);
                    if (each.at !== 1 || value > 0)
                        addPoint(curve(each.chart, line.label, i), row[0][0], value);
                }
            });
            each.chart.update("none");
        }
        loss.chart.update("none");
    }

    function addScore(rows, step, logloss) {
        if (!isNumber(logloss))
            return;
        const scored = curve(loss.chart, rows, 1);
        addPoint(scored, step, logloss);
        Object.assign(scored, { pointRadius: scored.data.length > 40 ? 0 : 3, borderDash: [6, 4] });
    }

    function takePoints(now) {
        const byName = new Map(now.roles.map(role => [role.role, role]));
        setLines(now.roles.map(role => role.role));
        for (const each of CHARTS) {
            lines.forEach((line, i) => {
                const roles = line.roles.map(name => byName.get(name)).filter(role => role && isNumber(role.rows));
                const value = together(roles.map(each.of), each.add);
                if (isNumber(value))
                    addPoint(curve(each.chart, line.label, i), now.t, value);
            });
            each.chart.update("none");
        }
        if (isNumber(now.loss))
            addPoint(curve(loss.chart, "training", 0), now.step, now.loss);
        if (now.validation)
            addScore("validation", now.validation.step, now.validation.logloss);
        else if (now.test)
            addScore("test", now.test.step, now.test.logloss);
        loss.chart.update("none");
    }

    // ---- the rest of the page ----

    const GOOD = ["running", "done"], BAD = ["killed", "failed"];
    const shown = role => isNumber(role.rows);
    const COLUMNS = [
        ["role", role => role.role, "left"],
        ["rows/s", role => role.rows > 0 ? count(role.rows_per_s) : "–"],
        ["share", role => percent(role.share)],
        ["CPU", role => percent(role.cores)],
        ["memory", role => bytes(role.rss_bytes)],
        ["sent", role => rate(role.sent_per_s)],
        ["received", role => rate(role.received_per_s)],
        ["wait", role => percent(role.wait)],
        ["for", role => role.silent && standing === "running" ? "silent" : role.waits_for || "", "left"],
        ["time", null, "left"],
        ["disk read", role => rate(role.disk_read_per_s)],
        ["disk write", role => rate(role.disk_write_per_s)],
        ["queue", role => count(role.queue)],
        ["stale", role => count(role.staleness)],
        ["host", role => role.host || "", "left"],
    ];
    const SPLIT = [["data", "reading rows"], ["compute", "computing"], ["communicate", "exchanging"], ["still", "standing still to score or save"], ["wait", "waiting"]];
    let standing = "";

    function splitBar(role) {
        const bar = make("div", undefined, "split"), words = [];
        for (const [name, meaning] of SPLIT) {
            if (!(role[name] > 0))
                continue;
            const part = make("span", undefined, "s-" + name);
            part.style.width = 100 * role[name] + "%";
            words.push(meaning + " " + percent(role[name]));
            bar.append(part);
        }
        bar.title = words.join(", ");
        bar.setAttribute("role", "img");
        bar.setAttribute("aria-label", bar.title);
        return bar;
    }

    function showRoles(roles) {
        const body = element("roles").tBodies[0];
        body.replaceChildren(...roles.map(role => {
            const row = make("tr");
            for (const [, text, side] of COLUMNS) {
                const cell = make("td", undefined, side);
                if (!shown(role))
                    cell.textContent = row.childElementCount === 0 ? role.role : "";
                else if (text)
                    cell.textContent = text(role);
                else
                    cell.append(splitBar(role));
                row.append(cell);
            }
            if (!shown(role))
                row.lastChild.textContent = "has not reported yet";
            return row;
        }));
    }

    function showTiles(now) {
        const test = now.test || {}, validation = now.validation || {};
        const tiles = [
            ["rows per second", count(now.rows_per_s)],
            ["training loss", score(now.loss)],
            ["validation log-loss", score(validation.logloss)],
            ["validation AUC", score(validation.auc)],
            ["validation accuracy", score(validation.accuracy)],
            ["test log-loss", score(test.logloss)],
            ["test AUC", score(test.auc)],
            ["test accuracy", score(test.accuracy)],
            ["learning rate", isNumber(now.lr) ? String(Number(now.lr.toPrecision(4))) : "–"],
            ["training time", time(now.t)],
            ["restarts", whole(now.restarts)],
        ];
        element("tiles").replaceChildren(...tiles.filter(([, value]) => value !== "–").map(([name, value]) => {
            const tile = make("div", undefined, "tile");
            tile.append(make("div", name, "name"), make("div", value, "value"));
            return tile;
        }));
    }

    function showHead(now) {
        const done = now.steps > 0 ? Math.floor(100 * now.position / now.steps) : 0, badge = element("standing");
        standing = now.standing;
        element("run").textContent = now.run;
        badge.textContent = standing;
        badge.className = "standing" + (GOOD.includes(standing) ? " good" : BAD.includes(standing) ? " bad" : "");
        element("job").textContent = [now.model, now.mode, now.roles.length > 0 ? now.roles.length + (now.roles.length === 1 ? " role" : " roles") : ""]
            .filter(Boolean).join(" · ");
        element("done").style.width = done + "%";
        element("bar").setAttribute("aria-valuenow", done);
        element("progress").textContent = isNumber(now.position)
            ? "step " + whole(now.position) + (now.steps > 0 ? " of " + whole(now.steps) + " (" + done + " %)" : "") +
              (isNumber(now.epoch) ? " · epoch " + (now.epoch < 100 ? Number(now.epoch.toPrecision(3)) : whole(now.epoch)) : "") +
              (isNumber(now.left_s) ? " · " + time(now.left_s) + " left" : "")
            : "waiting for the run to begin";
        document.title = (now.steps > 0 ? done + " % " : "") + now.run + " – paceline";
    }

    function showVerdict(verdict) {
        element("verdict").hidden = !verdict;
        if (!verdict)
            return;
        element("evidence").textContent = verdict.cause + ": " + verdict.evidence;
        element("advice").textContent = verdict.advice ? "What would help: " + verdict.advice : "";
    }

    function takeNow(now) {
        showHead(now);
        showTiles(now);
        showVerdict(now.bottleneck);
        showRoles(now.roles);
        element("lacking").hidden = now.lacks.length === 0;
        element("lacks").replaceChildren(...now.lacks.map(text => make("li", text)));
        takePoints(now);
    }

    // ---- from the server ----

    function say(text) {
        element("connection").hidden = !text;
        element("connection").textContent = text;
    }

    const clock = () => new Date().toLocaleTimeString();
    const events = new EventSource("/events" + location.search); // with the token, if there is one
    events.addEventListener("series", event => takeSeries(JSON.parse(event.data)));
    events.addEventListener("now", event => {
        say("");
        takeNow(JSON.parse(event.data));
    });
    events.addEventListener("end", () => {
        events.close();
        say("The process that served this page has ended, at " + clock() + "; what it said last stays.");
    });
    events.addEventListener("error", () => say("No connection since " + clock() + "; trying again."));

    element("roles").tHead.rows[0].append(...COLUMNS.map(([title, , side]) => make("th", title, side)));
    element("split").append(...SPLIT.map(([name, meaning]) => {
        const item = make("span");
        item.append(make("span", undefined, "swatch s-" + name), meaning);
        return item;
    }));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        for (const each of [loss, ...CHARTS])
            recolour(each.chart);
    });
})();
