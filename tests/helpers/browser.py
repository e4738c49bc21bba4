"""Headless Chromium through its driver's own protocol (W3C WebDriver), without another package."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def find_or_install():
    """Paths of Chromium and its driver; on Debian they are installed where absent, if we may."""

    def found():
        return shutil.which("chromium"), shutil.which("chromedriver")

    if not all(found()):
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            pytest.skip("needs Debian's chromium and chromium-driver, and root to install them")
        for command in (["update"], ["install", "-y", "chromium", "chromium-driver"]):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            run = ["apt-get", "-q", *command]
            subprocess.run(run, env=environment, capture_output=True, timeout=600, check=False)
            if all(found()):
                break
        else:
            pytest.skip("chromium and chromium-driver cannot be installed here")
    return found()


class Browser:
    """A page in the browser, driven as a reader would: clicks, keys and what is to be seen."""

    def __init__(self, address, session):
        self.address, self.session = address, session

    def call(self, method, path, **data):
        return request(method, f"{self.address}/session/{self.session}/{path}", data)

    def open(self, url):
        self.call("POST", "url", url=url)

    def script(self, code, *arguments):
        return self.call("POST", "execute/sync", script=code, args=list(arguments))

    def find(self, css):
        return self.call("POST", "element", using="css selector", value=css)[ELEMENT]

    def click(self, css):
        self.call("POST", f"element/{self.find(css)}/click")

    def type(self, css, text):
        self.call("POST", f"element/{self.find(css)}/value", text=text)

    def clear(self, css):
        self.call("POST", f"element/{self.find(css)}/clear")

    def console(self):
        """What the page wrote to the console, errors of every kind among it."""
        return self.call("POST", "se/log", type="browser")

    def picture(self, path):
        height = self.script("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.script("return innerWidth"), "scale": 1}
        clip["height"] = min(height, 6000)
        shot = {"captureBeyondViewport": True, "format": "png", "clip": clip}
        data = self.call("POST", "goog/cdp/execute", cmd="Page.captureScreenshot", params=shot)
        path.write_bytes(base64.b64decode(data["data"]))


def request(method, url, data=None):
    body = None if method in ("GET", "DELETE") else json.dumps(data or {}).encode()
    headers = {"Content-Type": "application/json"}
    call = urllib.request.Request(url, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from None


@contextmanager
def browser(profile, width, height, *, mobile=False):
    """A browser window of a given size, with a new empty profile."""
    chromium, driver = find_or_install()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        options = {
            "binary": chromium,
            "args": [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
        }
        if mobile:
            size = {"width": width, "height": height, "pixelRatio": 1, "mobile": True}
            options["mobileEmulation"] = {"deviceMetrics": size}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = start(address, {"capabilities": {"alwaysMatch": wanted}})
        try:
            yield Browser(address, session)
        finally:
            request("DELETE", f"{address}/session/{session}")
    finally:
        process.terminate()
        process.wait(timeout=20)


def start(address, wanted):
    deadline = time.monotonic() + 30
    while True:
        try:
            request("GET", f"{address}/status")
            break
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < deadline, "chromedriver does not answer"
            time.sleep(0.1)
    return request("POST", f"{address}/session", wanted)["sessionId"]
