"""Links opened in a browser on Airflow's own page."""

from __future__ import annotations

from itertools import product

import pytest

from tests.system.browser import Browser, chosen, fields, press

OPTION = '100 % "sure"'
ASKED = {"city": "Ærø & Søn", "amount": 12, "code": "007", "urgent": True}
RUN_ID = "manual__2026-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def browser():
    """A Chromium for all versions; each Airflow has a port, and so a page, of its own."""
    with Browser() as running:
        yield running


@pytest.mark.proves("links")
@pytest.mark.needs("chromium", "chromedriver")
def test_case_links_in_a_browser(stack, browser):
    """The link of a message leads to the question, with the option preselected and the fields filled in.

    The run's id has colons and a plus sign; the links were made in the task, by a notifier written for the
    standard operators: one for an Airflow at the root of its host, one for a ``base_url`` with a path.
    """
    with stack.beside("api-server-path", path="/airflow/prod") as prefixed:
        stack.trigger("links_pages", {"base_url": f"{prefixed}/"}, run_id=RUN_ID)
        look_and_answer(stack, browser, prefixed)


def look_and_answer(stack, browser, prefixed):
    """Open all links; answer on the last page."""
    parked = stack.parked_state
    stack.wait_tasks("links_pages", RUN_ID, {"group.ask": parked, ("each.ask", 1): parked})
    browser.open(f"{stack.url}/api/v2/version")
    browser.cookie("_token", stack.client().headers["authorization"].split()[-1])
    asked = (("group.ask", -1, "Unmapped?"), ("each.ask", 1, "Mapped 1?"))
    for key, (task_id, map_index, subject) in product(("link", "prefixed"), asked):
        link = stack.xcom("links_pages", RUN_ID, task_id, key, map_index=map_index)
        assert link.startswith(f"{prefixed if key == 'prefixed' else stack.url}/dags/links_pages/runs/")
        browser.open(link)
        browser.until(
            f"question {subject}", lambda s=subject: s in browser.text() and "city" in fields(browser)
        )
        shown = {name: fields(browser)[name] for name in ASKED}
        assert shown == {"city": "Ærø & Søn", "amount": "12", "code": "007", "urgent": True}
        assert chosen(browser) == OPTION
    # What the page shows is also what it sends, types included.
    press(browser, "Respond")
    answer = browser.until("answer", lambda: _answer(stack))
    assert (answer["chosen_options"], answer["params_input"]) == ([OPTION], ASKED)
    assert answer["responded_by_user"]["id"] == "admin"


def _answer(stack):
    """Return the request of the second mapped task once it is answered."""
    requests = stack.hitl("links_pages", RUN_ID)
    found = next(r for r in requests if r["task_instance"]["map_index"] == 1)
    return found if found["response_received"] else None
