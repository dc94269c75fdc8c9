from __future__ import annotations

import hashlib
import io
import os
import socket
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedwave.data import load_dataset
from fedwave.data.sources import download
from fedwave.data.sources.download import DOWNLOADS, MIRROR_VARIABLE, RemoteFile, download_dataset
from fedwave.errors import ConfigError, DataError
from tests.data.dataset_files import write_cifar_10, write_fashion_mnist


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class BreakingHandler(BaseHTTPRequestHandler):
    """Promises a thousand bytes, sends ten and hangs up."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)

    def log_message(self, *_: object) -> None:
        pass


def serve(handler: type | partial) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def published(empty_machine: Path, tmp_path: Path) -> Path:
    """The publisher's folder, with a small Fashion-MNIST in it."""
    folder = tmp_path / "published"
    for prefix in ("train", "t10k"):
        write_fashion_mnist(folder, prefix=prefix)
    return folder


@pytest.fixture
def mirror(published: Path) -> Iterator[str]:
    yield from serve(partial(QuietHandler, directory=str(published)))


@pytest.fixture
def breaking_mirror() -> Iterator[str]:
    yield from serve(BreakingHandler)


@pytest.fixture
def known(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expect the checksums of the small files instead of the published ones."""
    files = tuple(
        RemoteFile(file.name, hashlib.sha256((published / file.name).read_bytes()).hexdigest())
        for file in DOWNLOADS["fashion-mnist"].files
    )
    monkeypatch.setitem(DOWNLOADS, "fashion-mnist", replace(DOWNLOADS["fashion-mnist"], files=files))


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def assert_fails_cleanly(target: Path, message: str, **options: str) -> None:
    with pytest.raises(DataError) as caught:
        download_dataset("fashion-mnist", target=target, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Try again later, set FEDWAVE_DOWNLOAD_URL to a mirror, or fetch it by hand" in str(caught.value)
    assert list(target.iterdir()) == []


def test_a_download_is_verified_and_can_then_be_loaded(mirror, known, tmp_path):
    folder = download_dataset("fashion-mnist", target=tmp_path / "target", base_url=mirror)
    assert folder == tmp_path / "target" / "fashion-mnist"
    assert load_dataset("fashion-mnist", data_dir=tmp_path / "target").num_samples == 40
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["fashion-mnist"]


def test_the_cache_is_made_for_the_user_alone(mirror, known, empty_machine, monkeypatch):
    monkeypatch.setattr(download, "cache_dir", lambda: empty_machine)
    before = os.umask(0)
    try:
        folder = download_dataset("fashion-mnist", base_url=mirror)
    finally:
        os.umask(before)
    assert folder == empty_machine / "fashion-mnist"
    assert [path.stat().st_mode & 0o777 for path in (empty_machine, folder)] == [0o700] * 2
    assert load_dataset("fashion-mnist").num_samples == 40


def test_a_cache_that_others_can_write_to_is_not_filled(mirror, known, empty_machine, monkeypatch):
    monkeypatch.setattr(download, "cache_dir", lambda: empty_machine)
    empty_machine.mkdir()
    empty_machine.chmod(0o777)
    with pytest.raises(DataError, match=r"Cannot write fashion-mnist to .* \(others can write to .*go-w"):
        download_dataset("fashion-mnist", base_url=mirror)
    assert list(empty_machine.iterdir()) == []


def test_the_mirror_can_come_from_the_environment(mirror, known, tmp_path, monkeypatch):
    monkeypatch.setenv(MIRROR_VARIABLE, mirror + "/")
    assert len(list(download_dataset("fashion-mnist", target=tmp_path / "target").iterdir())) == 4


def test_the_second_address_is_tried_when_the_first_fails(mirror, known, tmp_path, monkeypatch):
    addresses = (f"http://127.0.0.1:{unused_port()}", mirror)
    monkeypatch.setitem(DOWNLOADS, "fashion-mnist", replace(DOWNLOADS["fashion-mnist"], base_urls=addresses))
    assert len(list(download_dataset("fashion-mnist", target=tmp_path / "target").iterdir())) == 4


def test_a_complete_dataset_is_left_alone_unless_forced(mirror, known, tmp_path):
    folder = download_dataset("fashion-mnist", target=tmp_path, base_url=mirror)
    damaged = folder / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(b"damaged")
    (folder / "notes.txt").write_text("mine")
    download_dataset("fashion-mnist", target=tmp_path, base_url=mirror)
    assert damaged.read_bytes() == b"damaged"
    download_dataset("fashion-mnist", target=tmp_path, base_url=mirror, force=True)
    assert damaged.read_bytes() != b"damaged"
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_wrong_checksum_keeps_nothing(mirror, tmp_path):
    message = f"{mirror}/train-images-idx3-ubyte.gz: wrong checksum"
    assert_fails_cleanly(tmp_path / "target", message, base_url=mirror)


def test_a_file_that_the_server_does_not_have_keeps_nothing(mirror, known, published, tmp_path):
    (published / "t10k-labels-idx1-ubyte.gz").unlink()
    message = f"Cannot download t10k-labels-idx1-ubyte.gz ({mirror}/t10k-labels-idx1-ubyte.gz: HTTP 404)"
    assert_fails_cleanly(tmp_path / "target", message, base_url=mirror)


def test_a_server_that_is_not_there_keeps_nothing(empty_machine, tmp_path):
    address = f"http://127.0.0.1:{unused_port()}"
    assert_fails_cleanly(tmp_path / "target", "train-images-idx3-ubyte.gz: no connection", base_url=address)


def test_a_connection_that_breaks_off_keeps_nothing(breaking_mirror, tmp_path):
    assert_fails_cleanly(tmp_path / "target", "the connection broke off", base_url=breaking_mirror)


def test_every_address_that_failed_is_named(breaking_mirror, tmp_path, monkeypatch):
    addresses = (f"http://127.0.0.1:{unused_port()}", breaking_mirror)
    monkeypatch.setitem(DOWNLOADS, "fashion-mnist", replace(DOWNLOADS["fashion-mnist"], base_urls=addresses))
    assert_fails_cleanly(tmp_path / "target", "no connection; http://")


def test_an_interrupted_download_leaves_nothing_behind(mirror, known, tmp_path):
    def interrupt(file_name: str) -> None:
        if file_name.startswith("t10k"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_dataset("fashion-mnist", target=tmp_path / "target", base_url=mirror, progress=interrupt)
    assert list((tmp_path / "target").iterdir()) == []


def test_a_target_that_cannot_be_written_is_one_clear_line(mirror, known, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        DataError, match=r"Cannot write fashion-mnist to .*file .* Give a writable --data-dir"
    ):
        download_dataset("fashion-mnist", target=tmp_path / "file", base_url=mirror)


def test_only_the_expected_files_are_taken_out_of_an_archive(mirror, published, tmp_path, monkeypatch):
    batches = [name for name in DOWNLOADS["cifar-10"].results if name != "batches.meta"]
    write_cifar_10(published / "cifar-10-batches-py", *batches)
    archive = published / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(published / "cifar-10-batches-py", "cifar-10-batches-py")
        escape = tarfile.TarInfo("../escaped")
        escape.size = 4
        tar.addfile(escape, io.BytesIO(b"evil"))
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    small = replace(DOWNLOADS["cifar-10"], files=(RemoteFile(archive.name, checksum),))
    monkeypatch.setitem(DOWNLOADS, "cifar-10", small)
    folder = download_dataset("cifar-10", target=tmp_path / "target", base_url=mirror)
    assert sorted(path.name for path in folder.iterdir()) == sorted(small.results)
    assert load_dataset("cifar-10", data_dir=tmp_path / "target").num_samples == 120
    assert not list(tmp_path.rglob("escaped"))


def test_an_archive_without_the_expected_files_is_refused(mirror, published, tmp_path, monkeypatch):
    archive = published / "cifar-100-python.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    small = replace(DOWNLOADS["cifar-100"], files=(RemoteFile(archive.name, checksum),))
    monkeypatch.setitem(DOWNLOADS, "cifar-100", small)
    with pytest.raises(DataError, match=r"cifar-100-python\.tar\.gz is not the expected archive"):
        download_dataset("cifar-100", target=tmp_path / "target", base_url=mirror)
    assert list((tmp_path / "target").iterdir()) == []


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r'no download for "cifar10"\. Did you mean "cifar-10"\?'):
        download_dataset("cifar10")
