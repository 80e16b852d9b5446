"""Our own SDKs on a running Airflow 3.3, through our coordinators."""

from __future__ import annotations

import re
import shutil
import time

import pytest

from tests.system.conftest import Run
from tests.system.foreign import CACHE, OLDEST_PYTHON, README_ROOT, SDKS
from tests.system.languages import available, fresh_root, run, tool

pytestmark = pytest.mark.versions("3.3")

RUST = SDKS / "rust"
#: The Dags of ``dags/sdks_readme.py``, in which the tasks of the READMEs run in every form.
READMES = (
    "readme_module",
    "readme_script",
    "readme_archive",
    "readme_footer",
    "readme_executable",
    "readme_static",
)
STATES = {
    "succeed": "success",
    "fail": "failed",
    "skip": "skipped",
    "remove": "removed",
    "retry": "success",
    "reschedule": "success",
    "defer": "success",
    "ask": "success",
    "listed": "success",
    ("doubled", 0): "success",
    ("doubled", 1): "success",
    ("doubled", 2): "success",
    "emit": "success",
    "everything": "success",
    "emit_alias": "success",
    "reach": "success",
    "interview": "success",
    "defer_then_ask": "success",
    "unanswered": "success",
}
CONNECTION = {
    "connection_id": "sdks_db",
    "conn_type": "postgres",
    "host": "db.example",
    "password": "correct-horse-battery",
    "extra": '{"a": 1}',
}


def build_rust() -> None:
    """Build the Rust SDK's example and pack it with the SDK's own packer."""
    root = fresh_root("sdk-rust")
    run([tool("cargo"), "build", "--example", "states", "--bin", "airflow-handoff-pack"], RUST)
    built = RUST / "target" / "debug"
    source = RUST / "examples" / "states.rs"
    packer = built / "airflow-handoff-pack"
    run([packer, built / "examples" / "states", "--source", source, "-o", root / "states"], CACHE)


def blocks(language, kind):
    """Return the README's code blocks of a kind."""
    text = (SDKS / language / "README.md").read_text()
    return re.findall(rf"^```{kind}[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def build_readme_python() -> None:
    """Write the tasks of the Python README, and pack them in each of the three forms."""
    tasks = next(block for block in blocks("python", "python") if '@task("numbers"' in block)
    work = README_ROOT / "work"
    shutil.rmtree(README_ROOT / "bundles", ignore_errors=True)
    shutil.rmtree(README_ROOT / "executables", ignore_errors=True)
    (README_ROOT / "module.py").write_text(tasks.replace('"numbers"', '"readme_module"'))
    # As the README says it: the file name decides the form.
    for dag_id, folder, name in (
        ("readme_script", "bundles", "script.py"),
        ("readme_archive", "bundles", "archive.pyz"),
        ("readme_footer", "bundles", "footer"),
        ("readme_executable", "executables", "executable"),
    ):
        source = work / dag_id
        source.mkdir(parents=True, exist_ok=True)
        (source / "tasks.py").write_text(tasks.replace('"numbers"', f'"{dag_id}"'))
        (source / "__main__.py").write_text("import tasks\n")
        (README_ROOT / folder).mkdir(exist_ok=True)
        packed = source if name.endswith(".pyz") else source / "tasks.py"
        pack = [OLDEST_PYTHON[0], "-m", "airflow_handoff_sdk.pack", packed, "-o", README_ROOT / folder / name]
        run(pack, work, PYTHONPATH=str(SDKS / "python" / "src"))


def build_readme_rust() -> None:
    """Follow the Rust README: its files, its build, its packer."""
    crate = README_ROOT / "rust"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / ".cargo").mkdir(exist_ok=True)
    package, config = blocks("rust", "toml")
    # `cargo new` writes the head; the crate is the one of this checkout.
    head = '[package]\nname = "numbers"\nversion = "0.1.0"\nedition = "2021"\n\n'
    patch = f'\n[patch.crates-io]\nairflow-handoff-sdk = {{ path = "{RUST}" }}\n'
    (crate / "Cargo.toml").write_text(head + package + patch)
    about = run([tool("rustc"), "-vV"], crate)
    host = re.search(r"^host: (.*)$", about, re.MULTILINE)[1]
    (crate / ".cargo" / "config.toml").write_text(config.replace("x86_64-unknown-linux-gnu", host))
    (crate / "src" / "main.rs").write_text(blocks("rust", "rust")[0].replace('"numbers"', '"readme_static"'))
    run([tool("cargo"), "build", "--release"], crate, CARGO_TARGET_DIR=str(crate / "target"))
    program = crate / "target" / host / "release" / "numbers"
    bundles = README_ROOT / "static"
    bundles.mkdir(exist_ok=True)
    packer = RUST / "target" / "debug" / "airflow-handoff-pack"
    run([packer, program, "--source", crate / "src" / "main.rs", "-o", bundles / "numbers"], crate)


@pytest.fixture(scope="module")
def readmes(started):
    """What became of the task of each README."""
    return {dag_id: Run(started["stack"], dag_id, run_id) for dag_id, run_id in started["readmes"].items()}


@pytest.fixture(scope="module")
def started(stack):
    """A run of each SDK's Dag, its question asked and old enough to be answered."""
    available(build_rust)
    README_ROOT.mkdir(parents=True, exist_ok=True)
    build_readme_python()
    available(build_readme_rust)
    stack.start("triggerer")
    made = stack.client().post("/api/v2/connections", json=CONNECTION)
    assert made.status_code == 201, made.text
    runs = {}
    for language in ("python", "rust"):
        dag_id = f"sdks_{language}"
        stack.wait_dag(dag_id)
        runs[language] = Run(stack, dag_id, stack.trigger(dag_id, {"limit": 8}))
    runs["stack"], runs["readmes"] = stack, {}
    for dag_id in READMES:
        stack.wait_dag(dag_id)
        runs["readmes"][dag_id] = stack.trigger(dag_id)
    asking = dict.fromkeys(("ask", "interview", "defer_then_ask"), "awaiting_input")
    for language in ("python", "rust"):
        runs[language].wait_tasks(asking, timeout=240)
    for language in ("python", "rust"):
        started = runs[language]
        for task_id, option in (("interview", "blue"), ("defer_then_ask", "yes")):
            answer = started.answer(task_id, option)
            assert answer.status_code == 200, answer.text
    yield runs
    stack.stop("triggerer")


def wait_asked_again(run):
    """Wait until the second question of the interview is open: the answer to the first one is gone."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        waits = run.task_instance("interview")["state"] == "awaiting_input"
        if waits and "interview" in {
            q["task_instance"]["task_id"] for q in run.hitl(response_received=False)
        }:
            return
        time.sleep(0.5)
    pytest.fail(f"the second question was never asked\n{run.describe()}")


@pytest.mark.parametrize("language", ["python", "rust"])
def test_everything_a_task_can_do(started, language):
    """All eight states, both resumes, a retry without old XComs, a mapped downstream and an asset event."""
    run = started[language]
    question = next(q for q in run.hitl() if q["task_instance"]["task_id"] == "ask")
    assert (question["subject"], question["options"]) == ("Publish?", ["yes", "no"])
    answer = run.answer("ask", "yes", {"reason": "tested"})
    assert answer.status_code == 200, answer.text
    wait_asked_again(run)
    answer = run.answer("interview", "yes")
    assert answer.status_code == 200, answer.text
    run.wait_tasks(STATES, timeout=240)
    assert run.xcom("succeed") == ["written by the task", {"page": 3}, [1, 2]]
    assert run.xcom("retry") == [2, None]
    assert run.xcom("reschedule") == [1, 1]
    assert run.xcom("defer") == [[1, 2], True]
    assert run.xcom("ask") == ["yes", {"reason": "tested"}, "admin"]
    assert [run.xcom("doubled", map_index=n) for n in range(3)] == [2, 4, 6]
    events = run.stack.client().get("/api/v2/assets/events", params={"source_dag_id": run.dag_id}).json()
    made = [(e["uri"], e["extra"].get("rows")) for e in events["asset_events"]]
    assert made == [(f"x-report://sdks/{language}", 3), (f"x-report://sdks/{language}", 4)]


@pytest.mark.parametrize("language", ["python", "rust"])
def test_several_questions_and_none_answered(started, language):
    """Two questions in one function, one of a function that resumed, and one that nobody answers."""
    run = started[language]
    asked = ("interview", "defer_then_ask", "unanswered")
    run.wait_tasks(dict.fromkeys(asked, "success"), timeout=240)
    assert run.xcom("interview") == ["blue", "yes"]
    assert run.xcom("defer_then_ask") == [[7], True, "yes"]
    assert run.xcom("unanswered") == "nobody answered"


@pytest.mark.parametrize("language", ["python", "rust"])
def test_types_and_moments(started, language):
    """The run's conf, JSON variables, an expiry, cleared asset state, events by time and by alias."""
    run = started[language]
    run.wait_tasks({"reach": "success"}, timeout=240)
    assert run.xcom("reach") == [[8, 9, 1], [5, None], [1, 1, 0, 0], None]


@pytest.mark.parametrize("language", ["python", "rust"])
def test_what_airflow_keeps(started, language):
    """Delays of the task's own and of its policy, a connection, a variable, an asset's values and events."""
    run = started[language]
    run.wait_tasks({"everything": "success"}, timeout=240)
    assert run.xcom("everything") == [3, ["db.example", {"a": 1}], "gone", {"rows": 3}, [3]]
    assert "too early" in run.task_log("everything", 1)
    assert "the policy says so" in run.task_log("everything", 2)
    log = run.task_log("everything", 3)
    assert "the password is ***" in log
    assert CONNECTION["password"] not in log
    assert "above its threshold" in log
    assert "below its threshold" not in log


@pytest.mark.parametrize("language", ["python", "rust"])
def test_logs_of_the_program(started, language):
    """Early and late records arrive in their order, and an error of the first try with its reason."""
    run = started[language]
    run.wait_tasks({"succeed": "success", "retry": "success"}, timeout=240)
    log = run.task_log("succeed")
    told = ["before the task is known", f"running in {language.title()}", "after the task has ended"]
    assert sorted(told, key=log.index) == told
    assert "the first try never works" in run.task_log("retry", 1)
    assert "Skipped. no new files" in run.task_log("skip")
    assert "No function for" in run.task_log("remove")


@pytest.mark.parametrize("dag_id", READMES)
def test_the_way_of_the_readmes(readmes, dag_id):
    """The files, commands and Dags that the READMEs show lead to the results that they promise."""
    run = readmes[dag_id]
    run.wait_tasks({"double": "success"}, timeout=240)
    assert run.xcom("double") == [2, 4, 6]
    log = run.task_log("double")
    assert "doubling" in log
    assert "count" in log


def test_the_bundle_of_the_readme_needs_no_library(readmes):
    """The Rust program that a newcomer builds is static."""
    readmes["readme_static"].wait_tasks({"double": "success"}, timeout=240)
    program = README_ROOT / "static" / "numbers"
    # An ELF file that asks for no dynamic loader.
    assert b"/ld-linux" not in program.read_bytes()


def test_the_foreign_interpreter_is_another_one(started):
    """The Python tasks ran in the oldest interpreter of the machine, which has nothing installed."""
    run = started["python"]
    run.wait_tasks({"succeed": "success"}, timeout=240)
    assert f"running in Python {OLDEST_PYTHON[1]}." in run.task_log("succeed")
