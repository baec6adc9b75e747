"""The recipe for sentences, against a loopback chat endpoint."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tools.sentences import QUESTIONS, main, questions

from kshot.data.catalog import datasets
from kshot.encode.prompts import from_sentences

CLASSES = ("red fox", "blue jay")


class Endpoint:
    """Answers with a sentence that numbers its requests; `breaks_at` hangs up at one of them."""

    def __init__(self, answer=None, breaks_at=None):
        outer = self
        self.requests, self.headers, self.breaks_at = [], [], breaks_at

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(asked)
                outer.headers.append(dict(self.headers))
                if len(outer.requests) == outer.breaks_at:
                    self.close_connection = True
                    return
                said = answer or f"Sentence {len(outer.requests)}\n about it. "
                body = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
                if answer == "nonsense":
                    body = b"<html>"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint(request):
    made = Endpoint(**getattr(request, "param", {}))
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def files(tmp_path):
    (tmp_path / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    return [str(tmp_path / "classes.txt"), str(tmp_path / "cupl.json")]


def run(files, endpoint, *more):
    return main([*files, "--endpoint", endpoint.url, "--model", "some-model", *more])


def test_every_question_is_asked_and_encode_reads_the_file(endpoint, files, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", "secret")
    assert run(files, endpoint, "--dataset", "Pets", "--times", "2", "--key-variable", "MY_KEY") == 0
    asked = [request["messages"][0]["content"] for request in endpoint.requests]
    wanted = questions("Pets", QUESTIONS)
    assert len(asked) == 2 * 2 * len(wanted)
    assert all(
        any(text.startswith(q.format(name)) for q in wanted)
        for text, name in zip(asked, [CLASSES[0]] * 6 + [CLASSES[1]] * 6, strict=True)
    )
    assert {request["model"] for request in endpoint.requests} == {"some-model"}
    assert {headers["Authorization"] for headers in endpoint.headers} == {"Bearer secret"}
    written = json.loads((tmp_path / "cupl.json").read_text())
    assert written["red fox"] == [f"Sentence {n} about it." for n in range(1, 7)]
    prompts = from_sentences(CLASSES, tmp_path / "cupl.json")
    assert prompts[1][0] == "blue jay. Sentence 7 about it."


@pytest.mark.parametrize("endpoint", [{"breaks_at": 5}], indirect=True)
def test_it_goes_on_where_the_endpoint_broke_off(endpoint, files, capsys, tmp_path):
    assert run(files, endpoint, "--times", "1") == 2
    assert "gave no answer" in capsys.readouterr().err
    first = json.loads((tmp_path / "cupl.json").read_text())
    assert list(first) == ["red fox"]
    assert run(files, endpoint, "--times", "1") == 0
    second = json.loads((tmp_path / "cupl.json").read_text())
    assert list(second) == list(CLASSES)
    assert second["red fox"] == first["red fox"]
    assert len(endpoint.requests) == 5 + 3


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ({"answer": "nonsense"}, "does not answer in the chat format"),
        ({"answer": "  \n"}, "said nothing about 'red fox'"),
    ],
    indirect=["endpoint"],
)
def test_answers_that_are_none(endpoint, files, capsys, says, tmp_path):
    assert run(files, endpoint) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "cupl.json").exists()


def test_questions_belong_to_datasets_and_name_the_class():
    import tomllib

    content = tomllib.loads(QUESTIONS.read_text())
    assert content["datasets"].keys() <= datasets().keys()
    for asked in (content["any"], *content["datasets"].values()):
        assert all(question.count("{}") == 1 for question in asked)
