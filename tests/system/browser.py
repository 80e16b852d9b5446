"""A Chromium without a window, driven over the WebDriver protocol with nothing but an HTTP client."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from tests.system.processes import Component, end, free_port

T = TypeVar("T")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--window-size=1400,1600",
)


class Browser:
    """One browser session with a profile of its own, removed at the end."""

    def __enter__(self) -> Browser:
        self.home = Path(tempfile.mkdtemp(prefix="handoff-browser-"))
        port = free_port()
        command = ["chromedriver", f"--port={port}", "--allowed-ips=127.0.0.1"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        log = self.home / "driver.log"
        self._driver = Component("chromedriver", command, env=env, log=log, cwd=self.home)
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)
        try:
            self.until("chromedriver", self._ready)
            options = {"args": [*ARGUMENTS, f"--user-data-dir={self.home / 'profile'}"]}
            wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
            self._session = "/session/" + self._call("POST", "/session", capabilities=wanted)["sessionId"]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if hasattr(self, "_session"):
                self._call("DELETE", self._session)
        finally:
            self._http.close()
            end([self._driver])
            shutil.rmtree(self.home, ignore_errors=True)

    def _ready(self) -> bool:
        try:
            return bool(self._call("GET", "/status")["ready"])
        except httpx.HTTPError:
            return False

    def _call(self, method: str, path: str, **body: Any) -> Any:
        answer = self._http.request(method, path, json=body if method == "POST" else None)
        value = answer.json()["value"]
        if answer.status_code >= 400:
            raise RuntimeError(f"{path}: {value['error']}: {value['message'][:500]}")
        return value

    def open(self, url: str) -> None:
        """Go to an address and wait for the page's load event."""
        self._call("POST", f"{self._session}/url", url=url)

    def tab(self) -> str:
        """Return the handle of the tab that is looked at."""
        return str(self._call("GET", f"{self._session}/window"))

    def new_tab(self) -> str:
        """Open another tab, look at it, and return its handle."""
        handle = str(self._call("POST", f"{self._session}/window/new", type="tab")["handle"])
        self.switch(handle)
        return handle

    def switch(self, handle: str) -> None:
        """Look at another tab."""
        self._call("POST", f"{self._session}/window", handle=handle)

    def cookie(self, name: str, value: str) -> None:
        """Set a cookie for the host of the page that is open."""
        self._call("POST", f"{self._session}/cookie", cookie={"name": name, "value": value, "path": "/"})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return what it returns."""
        return self._call("POST", f"{self._session}/execute/sync", script=script, args=list(arguments))

    @property
    def url(self) -> str:
        """The address of the page that is open."""
        return str(self._call("GET", f"{self._session}/url"))

    def text(self) -> str:
        """Return what a person can read on the page."""
        return str(self.run("return document.body.innerText"))

    def until(self, what: str, probe: Callable[[], T | None], timeout: float = 60.0) -> T:
        """Wait until a probe finds something, and return that.

        :raises AssertionError: with what the page shows instead.
        """
        deadline = time.monotonic() + timeout
        while not (found := probe()):
            if time.monotonic() > deadline:
                shown = self.text() if hasattr(self, "_session") else ""
                raise AssertionError(f"no {what} after {timeout:.0f} s; the page shows:\n{shown}")
            time.sleep(0.2)
        return found


def fields(browser: Browser) -> dict[str, Any]:
    """Return the values of the form's controls by the names of their fields."""
    script = """
      const found = {};
      for (const e of document.querySelectorAll('[name^=element_]'))
        found[e.name.slice(8)] = e.type === 'checkbox' ? e.checked : e.value;
      return JSON.stringify(found)"""
    return dict(json.loads(browser.run(script)))


def chosen(browser: Browser) -> str | None:
    """Return the option that the page's list of options shows as chosen."""
    script = """
      const named = document.querySelector('[name="element_chosen_options"]');
      if (named && named.value) return named.value;
      const shown = document.querySelector('[id*="element_chosen_options"]');
      return shown ? shown.innerText.split('\\n')[0].trim() : null"""
    found = browser.run(script)
    return None if found is None else str(found)


def press(browser: Browser, label: str) -> None:
    """Press the enabled button with a label.

    :raises AssertionError: when there is none within a minute.
    """
    script = """
      const found = [...document.querySelectorAll('button')].find(
        e => e.innerText.trim() === arguments[0] && !e.disabled);
      if (found) found.click();
      return Boolean(found)"""
    browser.until(f"button {label!r}", lambda: browser.run(script, label))
