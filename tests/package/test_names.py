"""One word, one meaning: a public class's name stands for one thing."""

from tools.names import SOURCE, repeats


def test_no_class_name_stands_for_two_things():
    assert repeats(SOURCE) == []


def test_a_repeated_class_name_is_found(tmp_path):
    for room in ("data", "bench"):
        (tmp_path / room).mkdir()
        (tmp_path / room / f"{room}_module.py").write_text("class Draw: ...\ndef take(): ...\nclass _Own: ...\n")
    (found,) = repeats(tmp_path)
    assert "Draw" in found
    assert "bench_module.py" in found
    assert "data_module.py" in found
