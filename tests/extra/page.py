"""
Opens the live page of a run in headless Chromium and looks at it; speaks the browser's protocol through a pair of pipes.

    page.py URL PICTURES

At 1280 and 400 pixels, light and dark: fails if the console says anything, if anything but the page and its events is asked
for, if a chart has no curve in it, if the page is wider than the window, or if the events do not reach it.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 60

# How many colours each chart has: without a curve, a chart has but those of its grid and its letters.
CHARTS = """JSON.stringify([...document.querySelectorAll('canvas')].map(canvas => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height), strong = new Set();
    for (let i = 0; i < data.length; i += 4) {
        const [r, g, b, a] = data.slice(i, i + 4);
        if (a === 255 && Math.max(r, g, b) - Math.min(r, g, b) > 60) strong.add((r << 16) + (g << 8) + b);
    }
    return [canvas.getAttribute('aria-label'), canvas.width, strong.size];
}))"""


class Chromium:
    def __init__(self, home):
        here_in, there_out = os.pipe()
        there_in, here_out = os.pipe()

        def arrange():  # the browser reads from 3 and writes to 4
            os.dup2(there_in, 20)
            os.dup2(there_out, 21)
            os.dup2(20, 3)
            os.dup2(21, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir=" + home, "about:blank"],
            preexec_fn=arrange, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(there_in)
        os.close(there_out)
        self.input, self.output = os.fdopen(here_in, "rb"), os.fdopen(here_out, "wb")
        self.last, self.session, self.events, self.pending = 0, None, [], b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        self.output.flush()
        while True:
            while b"\0" not in self.pending:
                piece = self.input.read1(1 << 20)
                if not piece:
                    sys.exit("chromium has ended")
                self.pending += piece
            line, self.pending = self.pending.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.last:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)["result"].get("value")

    def show(self, url, width, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + DEADLINE_S
        while not self.value("document.querySelectorAll('#roles tbody tr').length > 0"):
            if time.monotonic() > deadline:
                sys.exit("no events have come")
            time.sleep(0.1)
        self.value("new Promise(done => setTimeout(done, 2500))")  # a few more events

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))


def complaints(browser, url, width):
    wanted = {url, url.replace("/?", "/events?") if "?" in url else url + "events", "data:,"}
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            yield json.dumps(params)[:500]
        if method == "Network.requestWillBeSent" and params["request"]["url"] not in wanted:
            yield "asked for " + params["request"]["url"]
    for label, wide, colours in json.loads(browser.value(CHARTS)):
        if wide < 200 or colours < 1:
            yield f"chart without a curve: {label}, {wide} pixels wide"
    wide = browser.value("document.documentElement.scrollWidth")
    if wide > width:
        yield f"the page is {wide} pixels wide"


def main():
    url, pictures = sys.argv[1:]
    failed = False
    os.makedirs(pictures, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        browser = Chromium(home)
        for width in (1280, 400):
            for dark in (False, True):
                name = f"page-{width}-{'dark' if dark else 'light'}"
                browser.show(url, width, dark)
                found = list(complaints(browser, url, width))
                browser.picture(os.path.join(pictures, name + ".png"))
                print(name, "is good" if not found else "FAILED: " + "; ".join(found), flush=True)
                failed |= bool(found)
        browser.output.close()
        browser.process.terminate()
        browser.process.wait()
    sys.exit(failed)


main()
