"""Airflow's own page, in a browser: what it shows is what it can answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.browser import Browser, press

#: A tab that was asleep: what it shows stays as it is, and only its answer goes out.
ASLEEP = """
  const send = XMLHttpRequest.prototype.send, open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, ...rest) {
    this.reads = method.toUpperCase() === 'GET';
    return open.call(this, method, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...rest) { if (!this.reads) send.apply(this, rest); };
  const real = window.fetch;
  window.fetch = (...rest) => (rest[1]?.method ?? 'GET') === 'GET' ? new Promise(() => {}) : real(...rest);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for all versions; each Airflow has a port, and so a page, of its own."""
    with Browser() as running:
        yield running


def chosen(run: Any) -> list[str] | None:
    """Return what the run's one request was answered with."""
    return run.hitl()[0]["chosen_options"]


@pytest.mark.needs("chromium", "chromedriver")
@pytest.mark.run("server_pages")
def test_case_stale_tab_on_airflows_page(run: Any, browser: Browser) -> None:
    """Two tabs: the older one shows the 409, whatever the newer one saw, which answers."""
    page = f"{run.stack.url}/dags/{run.dag_id}/runs/{run.run_id}/tasks/choose/required_actions"
    browser.open(f"{run.stack.url}/api/v2/version")
    browser.cookie("_token", run.stack.client().headers["authorization"].split()[-1])
    old = browser.tab()
    browser.open(page)
    browser.until("the first question", lambda: "Which of try 1?" in browser.text())
    browser.run(ASLEEP)
    run.clear(["choose"])
    run.wait_tasks({"choose": run.stack.parked_state})
    new = browser.new_tab()
    browser.open(page)
    browser.until("the second question", lambda: "Which of try 2?" in browser.text())
    browser.switch(old)
    press(browser, "a")
    # Airflow's page shows the status, by name, and not what the response says.
    browser.until("the refusal", lambda: "Conflict" in browser.text())
    assert not chosen(run), "the request stays open"
    browser.switch(new)
    press(browser, "a")
    browser.until("the answer", lambda: chosen(run) == ["a"])
    assert run.wait_run() == "success"
    # The hidden field goes no further than the door.
    assert run.xcom("choose")["params_input"] == {}


@pytest.mark.needs("chromium", "chromedriver")
@pytest.mark.run("server_form_pages")
def test_a_form_is_sent_without_the_hidden_field(run: Any, browser: Browser) -> None:
    """A form with fields of its own, answered as on any other day: the person sees its fields only."""
    browser.open(f"{run.stack.url}/api/v2/version")
    browser.cookie("_token", run.stack.client().headers["authorization"].split()[-1])
    browser.open(f"{run.stack.url}/dags/{run.dag_id}/runs/{run.run_id}/tasks/fill/required_actions")
    browser.until("the question", lambda: "How many?" in browser.text())
    assert "handoff:seen" not in browser.text()
    press(browser, "OK")
    assert run.wait_run() == "success"
    assert run.xcom("fill")["params_input"] == {"count": 5}
