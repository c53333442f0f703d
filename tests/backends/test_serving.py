"""Load on a server: what is asked of it, what is timed, and what is said when it fails."""

import threading
from contextlib import closing

import pytest

from linkgauge.backends.serving import group_of
from linkgauge.backends.serving.load import Answer, ServingGroup, arrivals
from linkgauge.model.errors import BackendError, InputError, Unsupported
from linkgauge.model.workload import Server, Workload
from serving_kit import make_model, small_server, transformers_serve


def asked(url="http://127.0.0.1:1", batch=2, rate=None, **more):
    return Workload(
        "serving", batch=batch, prompt=4, tokens=3, server=Server(url, rate=rate, **more)
    )


def sampled(group, samples=3):
    timings = []
    for _ in range(samples):
        group.arm(1)
        group.open()
        timings.append(group.wait())
    return timings, group.done()


def stage(done, name):
    return next(one for one in done.stages if one.name == name)


class Counting:
    """A client that knows how many requests are under way at once."""

    def __init__(self):
        self.now = self.most = self.all = 0
        self.lock = threading.Lock()
        self.meet = threading.Event()

    def request(self, number):
        with self.lock:
            self.now += 1
            self.all += 1
            self.most = max(self.most, self.now)
        self.meet.wait(0.01)
        with self.lock:
            self.now -= 1
        return Answer(__import__("time").monotonic())

    def close(self):
        pass


def test_in_a_closed_loop_so_many_requests_are_under_way_and_no_more():
    client = Counting()
    with closing(ServingGroup(asked(batch=4), client)) as group:
        _, done = sampled(group, 1)
    assert client.most == 4
    assert client.all == group.pace.steps == 16
    assert len(stage(done, "request").seconds) == 16
    assert done.tokens_rate is None


def test_in_an_open_loop_requests_come_at_random_moments_at_the_rate_asked_for():
    moments = arrivals(100.0, 4000, seed=1)
    assert moments[0] == 0
    assert moments == sorted(moments) == arrivals(100.0, 4000, seed=1)
    assert moments[-1] == pytest.approx(40.0, rel=0.1)
    with closing(ServingGroup(asked(rate=1000.0), Counting())) as group:
        timings, done = sampled(group, 1)
    assert timings[0].span > arrivals(1000.0, 8, seed=1)[-1]
    assert done.how == ("open loop, 8 requests a sample",)


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
    assert stage(done, "first token").summary.median <= stage(done, "request").summary.median


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


def test_other_workloads_are_not_for_the_host():
    with pytest.raises(Unsupported, match="backend torch"):
        group_of(Workload("decode"))


@pytest.mark.ai
def test_transformers_serve_answers(tmp_path):
    pytest.importorskip("fastapi")
    make_model(tmp_path)
    with transformers_serve(tmp_path) as url, closing(group_of(asked(url))) as group:
        timings, done = sampled(group)
    assert all(timing.span > 0 for timing in timings)
    assert done.tokens_rate > 0
    assert stage(done, "first token").summary.median > 0
