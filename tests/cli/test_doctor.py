"""`kshot doctor` says what is here, and `kshot fit` names a stronger encoder only where it can be loaded."""

import torch
from typer.testing import CliRunner

from kshot.cli import doctor
from kshot.cli.main import app
from kshot.encode import encoders


def test_doctor_is_one_screen_of_facts(tmp_path, monkeypatch):
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "open_clip" else name)
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "uvicorn" else "1.2")
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) <= 24
    assert "serve lacks uvicorn;" in shown.stdout
    assert "lite0 works; MODEL/WEIGHTS lacks open_clip; hf:ORG/NAME yes" in shown.stdout
    assert f"picture features {tmp_path}" in shown.stdout
    assert ("CUDA build" if torch.version.cuda else "CPU build") in shown.stdout


def test_a_clip_is_named_where_it_can_be_loaded(monkeypatch):
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(encoders, "offline_reason", lambda: None)
    assert encoders.stronger_backbone("lite0") == "hf:openai/clip-vit-base-patch16"
    assert encoders.stronger_backbone("ViT-B-16") is None
    monkeypatch.setattr(encoders, "offline_reason", lambda: "no connection")
    assert encoders.stronger_backbone("lite0") is None
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: "config.json")
    assert encoders.stronger_backbone("lite0") == "hf:openai/clip-vit-base-patch16"
