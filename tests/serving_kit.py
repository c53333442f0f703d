"""Servers for tests: `transformers serve` with a random model and a tokenizer made here, and one of
OpenAI's protocol that answers from a few lines."""

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ("red", "two", "sun", "cat", "run", "box", "sky", "tea")


def make_model(folder):
    """A Llama of two layers with random weights, and a tokenizer of a few words."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(1)
    vocabulary = {word: at for at, word in enumerate(("<pad>", "<eos>", "<unk>", *WORDS))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    configuration = transformers.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, eos_token_id=None, bos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(configuration).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def transformers_serve(folder):
    """Its address, once it is healthy."""
    port = free_port()
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", str(folder), "--host", "127.0.0.1",
               "--port", str(port), "--device", "cpu", "--dtype", "float32"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_for(port, process, seconds=90):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read().decode()[-2000:]
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()
    raise AssertionError("the server does not come up")


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._send(200, json.dumps({"data": [{"id": "tiny"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        if self.path in self.server.absent:
            self._send(404, "{}")
        elif self.server.broken:
            self._send(500, "out of cheese")
        else:
            self.server.met()
            key = "text" if self.path == "/v1/completions" else "delta"
            word = "sun" if key == "text" else {"content": "sun"}
            events = [{"choices": [{key: word}]}] * body["max_tokens"]
            events += [{"choices": [], "usage": {"completion_tokens": body["max_tokens"]}}]
            text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
            self._send(200, f"{text}data: [DONE]\n\n", "text/event-stream")

    def _send(self, status, text, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
MODELS = b'{"data": [{"id": "tiny"}]}\n'
STREAM = (
    b'data: {"choices": [{"text": "sun", "delta": {"content": "sun"}}]}\n\n' * 4
    + b'data: {"choices": [], "usage": {"completion_tokens": 4}}\n\ndata: [DONE]\n\n'
)


def whole(body):
    """An answer with this body and its length."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


class _AnswersAnything(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.server.answers[self.command]
        with suppress(OSError):  # the client has read enough
            for piece in (answer,) if isinstance(answer, bytes) else answer():
                self.wfile.write(piece)
                self.server.sent += len(piece)

    def do_POST(self):
        self.do_GET()


@contextmanager
def server_of(answers):
    """A server that sends these bytes to every request of a method, or all that a function yields.
    `sent` counts them."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _AnswersAnything) as server:
        server.answers = {"GET": whole(MODELS), "POST": whole(STREAM), **answers}
        server.daemon_threads, server.sent = True, 0
        with _served(server):
            yield server


class _Small(ThreadingHTTPServer):
    """`asked` is what it was asked, `most` how many requests were under way at once."""

    daemon_threads = True

    def __init__(self, absent):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.absent, self.broken, self.meeting = absent, False, None
        self.asked, self.now, self.most, self.lock = [], 0, 0, threading.Lock()

    def met(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if self.meeting is not None:
            self.meeting.wait()
        with self.lock:
            self.now -= 1


@contextmanager
def small_server(absent=()):
    """A server that streams as many words as it is asked for."""
    with _Small(absent) as server, _served(server):
        yield server


@contextmanager
def _served(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
