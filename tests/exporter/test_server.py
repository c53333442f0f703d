"""The page over HTTP: for this machine alone, packed if asked for, whatever clients do."""

import gzip
import http.client
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from exporter_kit import RESULTS, families, nvml, page
from linkgauge.model.errors import InputError
from linkgauge.rooms.exporter.server import LOOPBACK, Address, MetricsServer, parse_listen

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def serving(text=None, address=None):
    """A server and its port."""
    own = text or (lambda form: gzip.compress(b"a 1\n") if form.packed else b"a 1\n")
    with MetricsServer(address or Address(LOOPBACK, 0), own) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def get(server, path="/metrics", method="GET", **headers):
    connection = http.client.HTTPConnection(*server.at, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_packs_it_if_asked_for():
    with nvml(), serving(lambda form: of.text(10, form)) as server:
        of = page(RESULTS, period=1000)
        answer, packed = get(server, **{"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        _, plain = get(server)
    assert set(families(gzip.decompress(packed))) == set(families(plain))
    assert len(packed) < len(plain) / 4


PROMETHEUS = (  # the header that Prometheus 3 sends
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize("packed", [False, True])
def test_speaks_openmetrics_with_those_who_ask_for_it(packed):
    """What its own client's strict parser reads are the same samples."""
    how = {"Accept-Encoding": "gzip"} if packed else {}
    with nvml(), serving(lambda form: of.text(10, form)) as server:
        of = page(RESULTS, period=1000)
        answer, text = get(server, Accept=PROMETHEUS, **how)
        plain, usual = get(server, Accept="text/plain, */*;q=0.1")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = (gzip.decompress(text) if packed else text).decode()
    assert text.endswith("\n# EOF\n")
    assert text.count("# EOF") == 1
    found = [*openmetrics(text)]
    names = [one.name for one in found]
    assert len(names) == len(set(names))
    assert any(one.type == "counter" for one in found)

    def counted(families):
        return Counter((sample.name, *sorted(sample.labels.items()))
                       for one in families for sample in one.samples)  # fmt: skip

    assert counted(found) == counted(families(usual).values())


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/metrics?a=b", 200), ("/other", 404), ("/../etc/passwd", 404)],
)
def test_paths(path, status):
    with serving() as server:
        assert get(server, path)[0].status == status


def test_a_connection_takes_several_scrapes():
    with serving() as server:
        connection = http.client.HTTPConnection(*server.at, timeout=20)
        for _ in range(3):
            connection.request("GET", "/metrics")
            assert connection.getresponse().read() == b"a 1\n"
        connection.close()


def test_clients_that_go_away_or_talk_nonsense_cost_nothing(capfd):
    with serving() as server:
        for said in (b"", b"GET /met", b"\x00\xff\n\n", b"GET /metrics HTTP/1.1\r\n\r\n"):
            with socket.create_connection(server.at) as client:
                client.sendall(said)
        assert get(server)[1] == b"a 1\n"
    assert capfd.readouterr() == ("", "")


class TestAddress:
    @pytest.mark.parametrize(
        ("text", "host", "port", "local"),
        [
            ("127.0.0.1:1", "127.0.0.1", 1, True),
            ("localhost:9410", "localhost", 9410, True),
            ("[::1]:9410", "::1", 9410, True),
            ("0.0.0.0:9410", "0.0.0.0", 9410, False),
            ("[::]:9410", "::", 9410, False),
            ("node17.example:80", "node17.example", 80, False),
            ("10.0.0.1:65535", "10.0.0.1", 65535, False),
        ],
    )
    def test_is_understood(self, text, host, port, local):
        found = parse_listen(text)
        assert (*found, found.is_local) == (host, port, local)
        assert str(found) == text

    def test_that_is_taken_or_of_nobody_is_one_line(self):
        with serving() as server, pytest.raises(InputError, match=r"cannot listen at 127\.0\.0\.1"):
            MetricsServer(server.at, lambda packed: b"")
        with pytest.raises(InputError, match=r"cannot listen at 192\.0\.2\.1:0"):
            MetricsServer(Address("192.0.2.1", 0), lambda packed: b"")


def test_the_connection_that_has_taken_longest_gives_way(monkeypatch):
    monkeypatch.setattr("linkgauge.rooms.exporter.server.MOST_CONNECTIONS", 2)
    with serving() as server, ExitStack() as held:
        slow = [held.enter_context(socket.create_connection(server.at)) for _ in range(2)]
        for one in slow:
            one.sendall(b"GET /metrics HTTP/1.1\r\n")
            one.settimeout(20)
        assert get(server)[1] == b"a 1\n"
        assert slow[0].recv(1) == b""
        slow[1].sendall(b"Host: x\r\n\r\n")
        assert slow[1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n", SCRAPE])
def test_a_request_that_trickles_is_ended_at_its_deadline(monkeypatch, said):
    """However often it sends a byte: before a request, within it, and before the next one."""
    monkeypatch.setattr("linkgauge.rooms.exporter.server.SECONDS", 0.5)
    with serving() as server, socket.create_connection(server.at) as client:
        client.settimeout(20)
        client.sendall(said)
        if said == SCRAPE:
            while not client.recv(1000).endswith(b"a 1\n"):
                pass
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 20:
                client.sendall(b"x")
                client.settimeout(0.1)
                with suppress(TimeoutError):
                    assert client.recv(1) == b""
                    break
        assert time.monotonic() - began < 20


def test_a_client_that_does_not_read_is_ended_at_its_deadline(monkeypatch):
    monkeypatch.setattr("linkgauge.rooms.exporter.server.SECONDS", 0.5)
    with (
        serving(lambda packed: bytes(64 << 20)) as server,
        socket.create_connection(server.at) as client,
    ):
        client.sendall(SCRAPE)
        client.settimeout(20)
        time.sleep(1.5)  # of which it reads nothing
        with suppress(ConnectionError):
            assert sum(map(len, iter(lambda: client.recv(1 << 20), b""))) < 64 << 20
