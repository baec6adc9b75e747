import io
import tarfile

import numpy as np
import pytest

from kshot.encode.hub import DATASETS, offline_reason
from kshot.encode.pictures import decode
from kshot.encode.sources import find_origins, find_source
from kshot.encode.sources.source import PictureShard, leave_out
from kshot.errors import InputError, KshotError
from picture_sets import CLASSES, add, picture, write_pictures, write_shards


def everything(source):
    return [p for shard in source.shards() for p in source.pictures(shard)]


def pixels(found):
    return {p.id: (p.part, p.label, np.asarray(p.load()).tobytes()) for p in found}


def put(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(picture(0, 1))


def test_folder_with_splits(tmp_path):
    put(tmp_path, *(f"{split}/{name}/1.png" for split in ("train", "test") for name in ("b_lue cheese", "apple")))
    (tmp_path / "train" / "apple" / "notes.txt").write_text("not a picture")
    source = find_source(str(tmp_path))
    assert source.classes == ("apple", "b lue cheese")
    assert [(p.part, p.id, p.label) for p in everything(source)] == [
        ("pool", "train/apple/1.png", 0),
        ("pool", "train/b_lue cheese/1.png", 1),
        ("test", "test/apple/1.png", 0),
        ("test", "test/b_lue cheese/1.png", 1),
    ]


def test_folder_without_splits_and_what_a_system_hides_among_pictures(tmp_path):
    put(tmp_path, "cat/1.png", "cat/._1.png", "cat/.thumbnails/1.png", ".trash/2.png", "2.png")
    assert [(p.part, p.id) for p in everything(find_source(str(tmp_path)))] == [("all", "cat/1.png")]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cat/1.png", "train/cat/1.png"], "has train; needed are one of train, pool and one of test, val"),
        (["big cat/1.png", "big_cat/1.png"], "big cat and big_cat would both be class 'big cat'"),
        (["1.png"], "holds no pictures"),
        ([], "there is no source at"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, names, message):
    put(tmp_path / "set", *names)
    with pytest.raises(InputError, match=message):
        find_source(str(tmp_path / "set"))


def test_links_to_folders_are_followed_and_circles_end(tmp_path):
    put(tmp_path, "elsewhere/fish/1.png", "set/birds/1.png")
    (tmp_path / "set" / "fish").symlink_to(tmp_path / "elsewhere" / "fish")
    (tmp_path / "set" / "birds" / "up").symlink_to(tmp_path / "set")
    source = find_source(str(tmp_path / "set"))
    assert source.classes == ("birds", "fish")
    assert [p.id for p in everything(source)] == ["birds/1.png", "fish/1.png"]


def test_csv(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(picture(number, 0))
    table = tmp_path / "all.csv"
    table.write_text("path,label,part\n0.png,dog,train\n1.png,cat ,test\n1.png,cat,test\n")
    source = find_source(str(table))
    assert source.classes == ("cat", "dog")
    assert [(p.part, p.id, p.label) for p in everything(source)] == [
        ("pool", "0.png", 1),
        ("test", "1.png", 0),
        ("test", "1.png", 0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\na,b\n", "has columns file, label; needed are path, label"),
        ("path,label\n../outside.png,cat\n", "line 2: '../outside.png' lies outside"),
        ("path,label,part\na.png,cat,dev\n", "line 2: part 'dev'; allowed are train"),
        ("path,label,part\na.png,cat,test\nb.png,cat,\n", "names a part in some lines only"),
    ],
)
def test_csv_that_cannot_be_used(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        find_source(str(tmp_path / "bad.csv"))


def test_webdataset_in_clip_benchmarks_layout(shards):
    source = find_source(str(shards))
    assert source.classes == CLASSES
    assert source.templates == ("a photo of {}.", "something {}.")
    assert [(s.part, s.key) for s in source.shards()][3:5] == [("pool", "train/3.tar"), ("test", "test/0.tar")]
    found = everything(source)
    assert len(found) == 72
    assert found[13].id == "train/1/s0000013"
    assert [p.label for p in found[:4]] == [0, 1, 2, 0]


def test_evaluation_shards_alone_are_one_part(tmp_path):
    source = find_source(str(write_shards(tmp_path / "wds", {"test": 2})))
    assert {p.part for p in everything(source)} == {"all"}


ADDRESS = "datasets/clip-benchmark/wds_it/resolve/main"


@pytest.fixture
def hub(tmp_path):
    write_shards(tmp_path / "hub" / ADDRESS, {"train": 4, "test": 2})
    return tmp_path / "hub"


@pytest.mark.parametrize("kind", ["folder", "shards"])
def test_a_class_that_is_left_out(tmp_path, kind):
    """Caltech101 without its background class: the other classes keep their pictures and their order."""
    if kind == "folder":
        place = write_pictures(tmp_path / "set", 4)
    else:
        place = write_shards(tmp_path / "set", {"train": 2, "test": 2})
    whole = find_source(str(place))
    rest = leave_out(whole, [whole.classes[1], "other"])
    assert rest.classes == whole.classes[:1] + whole.classes[2:]
    assert rest.origin == f"{whole.origin} without {whole.classes[1]}"
    kept = [p for p in everything(whole) if p.label != 1]
    assert [(p.part, p.id) for p in everything(rest)] == [(p.part, p.id) for p in kept]
    assert [rest.classes[p.label] for p in everything(rest)] == [whole.classes[p.label] for p in kept]
    assert leave_out(whole, ["other"]) is whole


def test_the_hub_gives_what_the_disk_gives_although_connections_drop(hub, serve, tmp_path):
    server = serve(hub, drops=True)
    source = find_source(f"{server.url}/{ADDRESS}")
    assert pixels(everything(source)) == pixels(everything(find_source(str(hub / ADDRESS))))
    resumed = [path for path, wanted in server.requests if wanted]
    assert resumed
    assert all(path.endswith(".tar") for path in resumed)
    left = [path.name for path in (tmp_path / "hub-cache").rglob("*.tar")]
    assert left == [], "a shard that was read is removed"
    del source
    assert not [path for path in (tmp_path / "hub-cache").rglob("*") if path.name.endswith(".tar")]


def test_shards_of_the_users_own_cache_are_read_offline_and_stay(hub, serve, tmp_path, monkeypatch):
    from huggingface_hub import constants, hf_hub_download

    server = serve(hub)
    names = [path.relative_to(hub / ADDRESS).as_posix() for path in (hub / ADDRESS).rglob("*.*")]
    for name in names:
        hf_hub_download("clip-benchmark/wds_it", name, repo_type="dataset", endpoint=server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = len(server.requests)
    offline_reason.cache_clear()
    source = find_source("https://huggingface.co/datasets/clip-benchmark/wds_it")
    assert len(everything(source)) == 72
    del source
    assert len(server.requests) == before
    assert len(list((tmp_path / "hub-cache").rglob("*.tar"))) == 6


def test_a_file_of_another_size_than_announced_is_refused(hub, serve):
    source = find_source(f"{serve(hub, sizes={'0.tar': 99}).url}/{ADDRESS}")
    with pytest.raises(KshotError, match=r"cannot fetch train/0.tar of clip-benchmark/wds_it: .*size 99"):
        everything(source)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/wds", "https://huggingface.co/clip-benchmark/wds_it"])
def test_addresses_that_are_no_datasets(address):
    with pytest.raises(InputError, match=r"is not the address of a dataset on a hub: https://huggingface.co/datasets/"):
        find_source(address)


def hostile(tmp_path, fill):
    root = write_shards(tmp_path / "wds", {"test": 1}, per_shard=3)
    with tarfile.open(root / "test" / "0.tar", "w") as archive:
        add(archive, "s1.cls", b"0")
        add(archive, "s1.png", picture(0, 1))
        fill(archive)
    return find_source(str(root))


def link(name, target, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_hostile_members_are_not_opened_and_nothing_is_written(tmp_path):
    def fill(archive):
        add(archive, "/etc/evil.png", picture(0, 2))
        add(archive, "../../evil.png", picture(0, 3))
        archive.addfile(link("s2.png", "/etc/hostname", tarfile.SYMTYPE))
        archive.addfile(link("s3.png", "s1.png", tarfile.LNKTYPE))
        archive.addfile(link("s4.png", "", tarfile.FIFOTYPE))
        add(archive, "s1.pkl", b"cos\nsystem\n(S'touch /tmp/evil'\ntR.")
        add(archive, "s1.json", b"{}")

    source = hostile(tmp_path, fill)
    before = sorted(tmp_path.rglob("*"))
    assert [p.id for p in everything(source)] == ["test/0/s1"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"s2.cls": b"1"}, "s2 has a picture without class or a class without picture"),
        ({"s2.cls": b"__import__('os')"}, "not a class number"),
        ({"s1.cls": b"0"}, "has a picture without class"),
        ({"s2.cls": b"7", "s2.png": picture(0, 1)}, r"s2 has class 7; allowed is 0\.\.2"),
    ],
)
def test_members_that_do_not_fit(tmp_path, members, message):
    source = hostile(tmp_path, lambda archive: [add(archive, *member) for member in members.items()])
    with pytest.raises(InputError, match=message):
        everything(source)


def test_something_that_is_no_tar(tmp_path):
    root = write_shards(tmp_path / "wds", {"test": 1})
    (root / "test" / "0.tar").write_bytes(b"<html>login</html>" * 100)
    with pytest.raises(InputError, match="not a readable tar archive"):
        list(find_source(str(root)).pictures(PictureShard("all", "test/0.tar")))


def test_pictures_beyond_our_limit_and_pillows(monkeypatch):
    from PIL import Image

    with pytest.raises(InputError, match=r"bomb.png declares 40 × 30 pixels; at most 1,000"):
        decode(picture(0, 0), "bomb.png", most_pixels=1000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(InputError, match=r"bomb.png is not a readable picture \(Image size .* exceeds limit"):
        decode(picture(0, 0), "bomb.png")


@pytest.mark.parametrize(
    "content", [b"", b"miaow", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", picture(0, 0)[:200]]
)
def test_what_is_not_a_raster_picture(content):
    with pytest.raises(InputError, match=r"a\.jpg is not a readable picture"):
        decode(content, "a.jpg")


def test_transparency_is_shown_on_white():
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(out, "PNG")
    assert np.asarray(decode(out.getvalue(), "clear.png")).min() == 255


def test_an_address_that_nobody_answers_is_one_sentence(serve):
    message = r"^the hub cannot be reached \(.*refused\)\. .*give a local copy"
    with pytest.raises(KshotError, match=message):
        find_source("http://127.0.0.1:9/datasets/a/b")


def test_a_dataset_of_the_catalog_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"there is no folder Pets; .*: kshot encode --dataset Pets --backbone ViT-B-16"
    ):
        find_origins("Pets", [])
    (tmp_path / "Pets").mkdir()
    assert find_origins("Pets", [])[0].where == "Pets"


def test_the_hub_is_the_default_and_needs_a_dataset():
    first, *_ = find_origins(DATASETS, ["paper"])
    assert first.where == "https://huggingface.co/datasets/clip-benchmark/wds_fgvc_aircraft/resolve/main"
    with pytest.raises(InputError, match="needs --dataset: `paper` for the paper's ten"):
        find_origins(DATASETS, [])
