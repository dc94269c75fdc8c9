"""Fetches datasets from their publishers, checksums verified; nothing half-written is left behind."""

from __future__ import annotations

import logging
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedwave.data.sources.locate import cache_dir, require_own
from fedwave.errors import ConfigError, DataError, did_you_mean, import_extra
from fedwave.files import open_file

# When set, files are fetched from this address (a mirror) instead of the publishers'.
MIRROR_VARIABLE = "FEDWAVE_DOWNLOAD_URL"
TIMEOUT_S = 30
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class RemoteFile:
    """One published file and its checksum."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Download:
    """Where a dataset is published, tried in order, and the folder it goes to."""

    base_urls: tuple[str, ...]
    files: tuple[RemoteFile, ...]
    folder: str
    size_mb: int
    # The files to take out of a tar archive; when empty, the downloaded files are kept as they are.
    members: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the files in ``folder`` once the download is complete."""
        return tuple(Path(name).name for name in self.members) or tuple(file.name for file in self.files)


_TORONTO = ("https://www.cs.toronto.edu/~kriz", "https://cave.cs.toronto.edu/kriz")

DOWNLOADS: dict[str, Download] = {
    "fashion-mnist": Download(
        base_urls=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ),
        files=(
            RemoteFile(
                "train-images-idx3-ubyte.gz",
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            RemoteFile(
                "train-labels-idx1-ubyte.gz",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            RemoteFile(
                "t10k-images-idx3-ubyte.gz",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            RemoteFile(
                "t10k-labels-idx1-ubyte.gz",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        folder="fashion-mnist",
        size_mb=31,
    ),
    "cifar-10": Download(
        base_urls=_TORONTO,
        files=(
            RemoteFile(
                "cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
            ),
        ),
        folder="cifar-10-batches-py",
        size_mb=170,
        members=tuple(
            f"cifar-10-batches-py/{name}"
            for name in ("batches.meta", *(f"data_batch_{index}" for index in range(1, 6)), "test_batch")
        ),
    ),
    "cifar-100": Download(
        base_urls=_TORONTO,
        files=(
            RemoteFile(
                "cifar-100-python.tar.gz", "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
            ),
        ),
        folder="cifar-100-python",
        size_mb=169,
        members=("cifar-100-python/meta", "cifar-100-python/train", "cifar-100-python/test"),
    ),
    "tiny-imagenet": Download(
        base_urls=("https://cs231n.stanford.edu", "http://cs231n.stanford.edu"),
        files=(
            RemoteFile(
                "tiny-imagenet-200.zip", "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821"
            ),
        ),
        folder="tiny-imagenet",
        size_mb=248,
    ),
}


def download_dataset(
    name: str,
    *,
    target: Path | None = None,
    base_url: str | None = None,
    force: bool = False,
    progress: Callable[[str], Any] | None = None,
) -> Path:
    """Fetch a dataset into a sub-folder of ``target`` (default: the user cache) and return that sub-folder.

    Files arrive in a temporary folder, are verified there, and are then moved into place. A complete dataset
    is left alone unless ``force``. ``progress(file_name)`` returns an object with ``total``,
    ``update(num_bytes)``, ``reset()`` and ``close()``, as ``pooch`` expects of a progress bar.
    """
    if name not in DOWNLOADS:
        raise ConfigError(f'There is no download for "{name}". {did_you_mean(name, DOWNLOADS)}')
    download = DOWNLOADS[name]
    root = cache_dir() if target is None else target.expanduser()
    folder = root / download.folder
    if not force and all((folder / result).is_file() for result in download.results):
        return folder
    mirror = base_url or os.environ.get(MIRROR_VARIABLE)
    base_urls = (mirror,) if mirror else download.base_urls
    try:
        _make(root, is_in_cache=target is None)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as staging_name:
            staging = Path(staging_name)
            for file in download.files:
                _fetch(file, base_urls, staging, progress=progress)
            if download.members:
                _take_out(staging / download.files[0].name, download.members, staging)
            _make(folder, is_in_cache=target is None)
            for result in download.results:
                (staging / result).replace(folder / result)
    except OSError as error:
        raise DataError(
            f"Cannot write {name} to {root} ({error.strerror or error}). Give a writable --data-dir."
        ) from error
    return folder


def _make(folder: Path, *, is_in_cache: bool) -> None:
    if is_in_cache:
        require_own(folder, is_made=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)


def _fetch(
    file: RemoteFile, base_urls: tuple[str, ...], staging: Path, *, progress: Callable[[str], Any] | None
) -> None:
    """Fetch one file from the first address that delivers it with the right checksum."""
    pooch = import_extra("pooch", purpose="Downloading", extra="learn")
    pooch.get_logger().setLevel(logging.WARNING)  # the command line says what happens
    failures = []
    for base_url in base_urls:
        url = f"{base_url.rstrip('/')}/{file.name}"
        downloader = pooch.HTTPDownloader(
            progressbar=progress(file.name) if progress else False, chunk_size=CHUNK_BYTES, timeout=TIMEOUT_S
        )
        try:
            pooch.retrieve(
                url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=staging, downloader=downloader
            )
        except Exception as error:
            reason = _reason(error)
            if reason is None:
                raise
            failures.append(f"{url}: {reason}")
        else:
            return
    raise DataError(
        f"Cannot download {file.name} ({'; '.join(failures)}). Try again later, set "
        f"{MIRROR_VARIABLE} to a mirror, or fetch it by hand and pass --data-dir."
    )


def _reason(error: Exception) -> str | None:
    """Return in a few words why a download failed, or None when it is not about the download."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"HTTP {error.response.status_code}"
    if isinstance(error, exceptions.Timeout):
        return f"no answer within {TIMEOUT_S} s"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, exceptions.ConnectionError):
        return "no connection"
    if isinstance(error, exceptions.RequestException):
        return type(error).__name__
    if isinstance(error, ValueError):  # how pooch reports a checksum that differs
        return "wrong checksum"
    return None


def _take_out(archive_path: Path, members: tuple[str, ...], staging: Path) -> None:
    """Take the named regular files out of a tar archive; nothing else in it is touched."""
    try:
        with open_file(archive_path) as file, tarfile.open(fileobj=file) as archive:
            for member in members:
                stream = archive.extractfile(member)
                if stream is None:
                    raise KeyError(f"{member} is not a file")
                (staging / Path(member).name).write_bytes(stream.read())
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive_path.name} is not the expected archive ({error}). Report it: its checksum was right."
        ) from error
