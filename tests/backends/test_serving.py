"""Load on a server: what is asked of it, what is timed, and what is said when it fails."""

import gzip
import re
import sys
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest

from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import run
from linkgauge.model.errors import BackendError, InputError, MissingPackage, Unsupported
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.workload import Server, Workload
from serving_kit import (
    HEAD,
    MODELS,
    STREAM,
    make_model,
    server_of,
    small_server,
    transformers_serve,
    whole,
)


def asked(url="http://127.0.0.1:1", batch=2, rate=None, **more):
    return Workload(
        "serving", batch=batch, prompt=4, tokens=3, server=Server(url, rate=rate, **more)
    )


def group_of(work):
    (transfer,) = parse_transfers("null -> null by host:0.cpu")
    return HostBackend([]).carry_out(transfer, work)


def sampled(group, samples=3):
    timings = [run(group, 1) for _ in range(samples)]
    return timings, group.done()


def stage(done, name):
    return next(one for one in done.stages if one.name == name)


def test_in_a_closed_loop_so_many_requests_are_under_way_and_no_more():
    with small_server() as server, closing(group_of(asked(server.url, 4))) as group:
        server.meeting = threading.Barrier(4, timeout=60)  # no answer before so many ask
        _, done = sampled(group, 1)
    assert server.most == 4
    assert group.policy.steps == 16
    assert len(stage(done, "request").seconds) == 16


def test_in_an_open_loop_requests_come_at_the_rate_asked_for():
    with small_server() as server, closing(group_of(asked(server.url, rate=200.0))) as group:
        timings, done = sampled(group, 1)
    assert timings[0].span > 1.5
    assert done.how[0] == "open loop, 400 requests"


def test_answers_are_streamed_and_their_tokens_counted(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with small_server() as server, closing(group_of(asked(server.url))) as group:
        _, done = sampled(group)
        path, headers, body = server.asked[-1]
    assert path == "/v1/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert (body["model"], body["max_tokens"], body["stream"]) == ("tiny", 3, True)
    assert len(body["prompt"].split()) == 4
    assert done.tokens_rate > 0
    assert len(stage(done, "first token").seconds) == 8
    assert len(stage(done, "between tokens").seconds) == 8 * 2
    for name in ("first token", "between tokens"):
        assert stage(done, name).summary.median <= stage(done, "request").summary.median


def test_what_is_no_answer_is_an_error_with_what_the_server_said():
    with small_server() as server, closing(group_of(asked(server.url))) as group:
        server.broken = True
        group.arm(1)
        group.open()
        with pytest.raises(BackendError, match="HTTP 500: out of cheese"):
            group.wait()
    with pytest.raises(BackendError, match=r"127.0.0.1:1/v1/models"):
        group_of(asked())
    with pytest.raises(InputError, match="give http://HOST:PORT"):
        group_of(asked("ftp://host"))


def test_a_server_without_completions_is_asked_to_chat():
    with (
        small_server(absent=("/v1/completions",)) as server,
        closing(group_of(asked(server.url, model="mine"))) as group,
    ):
        _, done = sampled(group, 1)
        path, _, body = server.asked[-1]
    assert (path, body["model"]) == ("/v1/chat/completions", "mine")
    assert body["messages"][0]["role"] == "user"
    assert done.tokens_rate > 0


def test_other_workloads_are_not_for_the_host():
    with pytest.raises(Unsupported, match="backend torch"):
        group_of(Workload("decode"))


DEEP = b"[" * 100_000
NOT_UNDERSTOOD = "its answer is not understood"


def requested(server):
    """All that a client asks of a server, from its model on."""
    with closing(group_of(asked(server.url))) as group:
        sampled(group, 1)


@pytest.mark.parametrize(
    ("method", "body", "said"),
    [
        ("GET", b"{", NOT_UNDERSTOOD), ("GET", DEEP, NOT_UNDERSTOOD),
        ("GET", gzip.compress(MODELS, mtime=0), NOT_UNDERSTOOD),
        ("GET", b'{"data": 5}', NOT_UNDERSTOOD), ("GET", b'{"data": [{}]}', NOT_UNDERSTOOD),
        ("GET", b'{"data": [{"id": null}]}', NOT_UNDERSTOOD),
        ("GET", b'{"data": null}', "it names no model"), ("POST", b"data: {\n\n", NOT_UNDERSTOOD),
        ("POST", b"data: " + DEEP + b"\n\n", NOT_UNDERSTOOD),
        ("POST", b"data: \xff\n\n", NOT_UNDERSTOOD),
        ("POST", b'data: {"choices": {}}\n\n', NOT_UNDERSTOOD),
        ("POST", b'data: {"choices": [{"delta": []}]}\n\n', NOT_UNDERSTOOD),
        ("POST", b'data: {"usage": {"completion_tokens": -1}}\n\n', NOT_UNDERSTOOD),
        ("POST", b'data: {"usage": {"completion_tokens": "9"}}\n\n', NOT_UNDERSTOOD),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_one_line_that_names_the_server(method, body, said):
    with server_of({method: whole(body)}) as server:
        with pytest.raises(BackendError, match=f"{method} {server.url}/v1/.*{said}") as found:
            requested(server)
        assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"what?\r\n\r\n", "what?"),
        (HEAD + b"Content-Length: 9999999\r\n\r\n" + STREAM, "ends too soon"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\ndata:", ""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nlong\r\ndata:", ""),
    ],
)
def test_an_answer_that_breaks_off_names_the_server(answer, said):
    with (
        server_of({"POST": answer}) as server,
        pytest.raises(BackendError, match=f"POST {server.url}/v1/completions: .*{re.escape(said)}"),
    ):
        requested(server)


def endless(piece):
    def answer():
        yield HEAD + b"\r\n"
        while True:
            yield piece

    return answer


@pytest.mark.parametrize("piece", [b"x" * (1 << 20), STREAM * 1000])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_of_an_answer_without_end_no_more_is_read_than_an_answer_may_have(method, piece):
    with server_of({method: endless(piece)}) as server:
        with pytest.raises(BackendError, match=rf"{server.url}/v1/.* has more than \d+ bytes"):
            requested(server)
        assert server.sent < 64 << 20  # what lies in buffers of sockets is sent, too


class FakeTriton:
    """tritonclient's module of a protocol, as far as it is used."""

    sent = ()

    class InferInput:
        def __init__(self, name, shape, kind):
            self.name, self.shape, self.kind = name, shape, kind

        def set_data_from_numpy(self, data):
            self.data = data

    inputs = ({"name": "data", "shape": [-1, 3], "datatype": "FP32"},)

    class InferenceServerClient:
        def __init__(self, address):
            assert address == "127.0.0.1:8000"

        def get_model_repository_index(self):
            return [{"name": "twice"}]

        def get_model_metadata(self, name):
            return {"inputs": FakeTriton.inputs}

        def infer(self, name, inputs):
            if FakeTriton.sent == ["enough"]:
                raise RuntimeError("no slot left")
            FakeTriton.sent.append((name, inputs[0].data.shape, str(inputs[0].data.dtype)))

        def close(self):
            pass


@pytest.fixture
def fake_triton(monkeypatch):
    monkeypatch.setitem(sys.modules, "tritonclient.http", FakeTriton)
    types = SimpleNamespace(triton_to_np_dtype={"FP32": "float32"}.get)
    monkeypatch.setitem(sys.modules, "tritonclient.utils", types)
    monkeypatch.setattr(FakeTriton, "sent", [])


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (({"name": "data"},), "KeyError: 'shape'"),
        (None, "TypeError"),
        (({"name": "x", "shape": [1 << 40], "datatype": "FP32"},), "input x has more than"),
        (({"name": "x", "shape": ["many"], "datatype": "FP32"},), "ValueError"),
    ],
)
def test_what_a_triton_server_says_of_its_model_is_checked(fake_triton, monkeypatch, inputs, said):
    monkeypatch.setattr(FakeTriton, "inputs", inputs)
    with pytest.raises(BackendError, match=f"Triton at http://127.0.0.1:8000: .*{said}"):
        group_of(asked("http://127.0.0.1:8000", kind="triton-http"))


def test_a_triton_server_gets_inferences_of_its_models_inputs(fake_triton, monkeypatch):
    work = asked("http://127.0.0.1:8000", kind="triton-http")
    with closing(group_of(work)) as group:
        _, done = sampled(group, 1)
        assert FakeTriton.sent == [("twice", (1, 3), "float32")] * 8
        assert [one.name for one in done.stages] == ["request"]
        monkeypatch.setattr(FakeTriton, "sent", ["enough"])
        group.arm(1)
        group.open()
        with pytest.raises(BackendError, match="no slot left"):
            group.wait()


def test_without_tritons_client_there_is_one_line_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tritonclient.grpc", None)
    with pytest.raises(MissingPackage, match=r"linkgauge\[serving\]"):
        group_of(asked("127.0.0.1:8001", kind="triton-grpc"))


@pytest.mark.ai
def test_transformers_serve_answers(tmp_path):
    pytest.importorskip("fastapi")
    make_model(tmp_path)
    with transformers_serve(tmp_path) as url, closing(group_of(asked(url))) as group:
        timings, done = sampled(group)
    assert all(timing.span > 0 for timing in timings)
    assert done.tokens_rate > 0
    assert stage(done, "first token").summary.median > 0
