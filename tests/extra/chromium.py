"""
Opens HTML files in headless Chromium, through its pipe: no other package than chromium and Python's own library.

    chromium.py PICTURES WHAT FILE...      pictures go to the directory PICTURES

Each file is opened at 1280 and 400 pixels, dark and light. It fails if anything was said on the console, anything but the file
itself was asked for, a chart has no drawn pixels, the page is wider than the window, or drawing took longer than SECONDS_MAX;
also when all that is folded was opened and curves were turned to the other axis. WHAT is "all", or "first" for a picture of
each size only.
"""
import base64
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 2.0
TRIES = 3
WAIT_S = 60.0

# Of every canvas that is shown: how many different colours its pixels have.
COUNT_COLOURS = """
JSON.stringify(Array.from(document.querySelectorAll('canvas')).filter(c => c.offsetParent && !c.closest('details:not([open])')).map(c => {
    const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true}), seen = new Set();
    copy.canvas.width = c.width;
    copy.canvas.height = c.height;
    if (c.width && c.height) copy.drawImage(c, 0, 0);
    const pixels = c.width && c.height ? copy.getImageData(0, 0, c.width, c.height).data : [];
    let inked = 0;
    for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i + 3]) { inked++; seen.add((pixels[i] << 16) + (pixels[i + 1] << 8) + pixels[i + 2]); }
    }
    return [c.dataset.chart, inked, seen.size, c.width, c.height];
}))"""


def pipe_above():
    """A pipe whose ends leave 3 and 4 free: there, Chromium reads and writes."""
    ends = os.pipe()
    above = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return above


class Browser:
    def __init__(self):
        self.home = tempfile.TemporaryDirectory()
        to_browser, self.to = pipe_above()
        self.back, from_browser = pipe_above()
        os.dup2(to_browser, 3)
        os.dup2(from_browser, 4)
        os.close(to_browser)
        os.close(from_browser)
        self.process = subprocess.Popen(
            [os.environ.get("CHROMIUM", "chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + self.home.name, "about:blank"],
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(3)
        os.close(4)
        self.number = 0
        self.rest = b""
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def read(self):
        while b"\0" not in self.rest:
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise SystemExit("chromium has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, path, width, dark):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        opened_ms = self.value("performance.timeOrigin")
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + WAIT_S
        while not self.value(f"document.readyState === 'complete' && performance.timeOrigin > {opened_ms}"):
            if time.monotonic() > deadline:
                raise SystemExit(f"{path}: not loaded after {WAIT_S} s")
            time.sleep(0.02)
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self, to):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1})
        with open(to, "wb") as out:
            out.write(base64.b64decode(shot["data"]))

    def said(self):
        """What the console and the log have, and what was asked for that is not the page."""
        found = []
        for event in self.events:
            what, details = event.get("method"), event.get("params", {})
            if what in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                found.append(json.dumps(details)[:600])
            if what == "Network.requestWillBeSent" and not details["request"]["url"].startswith("data:"):
                found.append("asked for " + details["request"]["url"])
        return found[1:] if found and found[0].startswith("asked for file://") else found

    def close(self):
        try:
            self.number += 1
            os.write(self.to, json.dumps({"id": self.number, "method": "Browser.close"}).encode() + b"\0")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()


# All that is folded, and the other axis.
OPEN_ALL = """
document.querySelectorAll('details').forEach(fold => { fold.open = true; });
document.querySelectorAll('input[name=axis][value=t]').forEach(input => input.click());
new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 0))"""


def faults(browser, width):
    charts = json.loads(browser.value(COUNT_COLOURS))
    wide = browser.value("document.documentElement.scrollWidth")
    wrong = [f"{chart}: {inked} pixels, {colours} colours, {w}x{h}" for chart, inked, colours, w, h in charts
             if inked < 500 or colours < 3 or w < 100]
    return len(charts), wrong + ([f"the page is {wide} pixels wide"] if wide > width else [])


def look(browser, path, width, dark, pictures):
    name = f"{os.path.splitext(os.path.basename(path))[0]}-{width}-{'dark' if dark else 'light'}"
    for _ in range(TRIES):  # others may have the processors
        browser.open(path, width, dark)
        drawn_ms = browser.value("Number(document.documentElement.dataset.drawn)")
        if drawn_ms and drawn_ms <= 1000 * SECONDS_MAX:
            break
    charts, wrong = faults(browser, width)
    wrong += [f"drawn after {drawn_ms} ms"] if not drawn_ms or drawn_ms > 1000 * SECONDS_MAX else []
    if pictures:
        browser.picture(os.path.join(pictures, name + ".png"))
    browser.value(OPEN_ALL)
    opened, more = faults(browser, width)
    if pictures and not dark:
        browser.picture(os.path.join(pictures, name + "-open.png"))
    wrong += [each + " (opened)" for each in more] + browser.said()
    print(f"{name}: {charts} charts, {opened} opened, drawn after {drawn_ms:.0f} ms, {os.path.getsize(path):,} bytes", flush=True)
    for each in wrong:
        print(f"FAILED: {name}: {each}")
    return not wrong


def main():
    pictures, what, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(pictures, exist_ok=True)
    browser = Browser()
    good = True
    try:
        for path in paths:
            for width in (1280, 400):
                for dark in (False, True):
                    wanted = what == "all" or dark == (width == 400)
                    good &= look(browser, path, width, dark, pictures if wanted else None)
    finally:
        browser.close()
    sys.exit(not good)


main()
