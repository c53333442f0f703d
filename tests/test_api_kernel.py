"""The Python API in a kernel of Jupyter, whose event loop runs: measured in a cell and in a thread,
and interrupted."""

import time
from queue import Empty

import pytest

jupyter = pytest.importorskip("jupyter_client.manager")  # as the kernel, not on RISC-V
pytest.importorskip("ipykernel")

PATIENCE = 60.0
MEASURE = 'linkgauge.measure("host:0 -> sim:0 by ce", "1M", samples=6, machine="dgx-h200-8")'
LONG = '"host:0 -> host:0 by cpu", "1M", samples=10**9, max_time=600, timeout=700'


class Kernel:
    """A kernel of a process of its own, in an empty folder."""

    def __init__(self, folder):
        self.manager, self.client = jupyter.start_new_kernel(kernel_name="python3", cwd=str(folder))

    def shows(self, code, meanwhile=lambda text: None):
        """What a cell shows, by kind. `meanwhile` hears what it prints."""
        asked, shown = self.client.execute(code), {}
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            if content.get("execution_state") == "idle":
                return shown
            if message["msg_type"] == "stream":
                meanwhile(content["text"])
            shown |= content.get("data", {}) if "data" in content else {}
            if message["msg_type"] == "error":
                shown |= {"error": (content["ename"], content["evalue"])}
        raise TimeoutError(code)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    own = tmp_path_factory.mktemp("kernel")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(own / name))
        patch.setenv("LINKGAUGE_HISTORY", "none")
        made = Kernel(own)
        try:
            yield made
        finally:
            made.close()


def test_a_cell_measures_while_the_event_loop_runs(kernel):
    shown = kernel.shows(f"import asyncio, linkgauge\nasyncio.get_running_loop()\n{MEASURE}")
    assert "error" not in shown
    assert shown["text/plain"].startswith("<linkgauge run ")
    assert "GB/s" in shown["text/html"]


def test_a_thread_measures_while_the_cell_awaits_it(kernel):
    shown = kernel.shows(
        "import asyncio, linkgauge\n"
        f"found = await asyncio.gather(*(asyncio.to_thread(lambda: {MEASURE}) for _ in range(2)))\n"
        "[one.cells[0].status for one in found]"
    )
    assert shown == {"text/plain": "['pass', 'pass']"}


def test_an_interrupt_ends_the_cell_and_leaves_the_kernel(kernel):
    told = []

    def interrupt_once(text):
        if not told and "copy host:0" in text:
            told.append(text)
            kernel.manager.interrupt_kernel()

    shown = kernel.shows(f"import linkgauge\nlinkgauge.measure({LONG})", interrupt_once)
    assert told
    name, message = shown["error"]
    assert name == "Interrupted"
    assert message.startswith("interrupted")
    after = kernel.shows(f"{MEASURE}.cells[0].status")
    assert after == {"text/plain": "'pass'"}
