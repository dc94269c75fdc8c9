"""Only regular files are opened, of a size that fits, and by ``fedwave.files`` alone."""

from __future__ import annotations

import ast
import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedwave import files
from fedwave.files import blocks_of, open_file, open_to_append, read_bytes, read_text, replace_file, text_of

SOURCE = Path(__file__).parents[1] / "src" / "fedwave"

# Calls that open a file elsewhere: the module, the call as it stands there, and why it may.
EXCEPTIONS = {
    ("files.py", "temporary.open"): "writes",
    ("runs/folder.py", "path.open"): "appends",
    ("experiments/new_project.py", "path.open"): "writes",
    ("experiments/new_project.py", "source.read_text"): "a file of the package",
    ("experiments/preset_files.py", "file.read_text"): "a file of the package",
    ("wireless/settings/presets/__init__.py", "resources.files.read_text"): "a file of the package",
    ("allocation/problem_file.py", "resources.files.read_text"): "a file of the package",
    ("pages/page.py", "resources.files.read_text"): "a file of the package",
    ("explore/server.py", "file.read_bytes"): "a file of the package",
    ("learning/precision.py", "_CPU_INFO.read_text"): "the system's own",
    ("native_library.py", "source.file.read_text"): "a file of the package",
    ("native_library.py", "Path('/proc/cpuinfo').read_text"): "the system's own",
    ("files.py", "os.open"): "this is where it is decided",
    ("user_cache.py", "os.open"): "looks at owners and modes too, from folder to folder",
    ("native_library.py", "made.read_bytes"): "the compiler's own output, in a new folder",
    ("cli/guard.py", "os.open"): "writes to nowhere",
    ("data/formats/idx.py", "gzip.open"): "an open file",
    ("data/sources/digits.py", "gzip.open"): "an open file",
    ("data/formats/images.py", "pillow.open"): "bytes",
    ("data/formats/npz.py", "np.load"): "an open file",
    ("data/formats/npz.py", "archive.open"): "a member of an open file",
    ("data/sources/digits.py", "np.loadtxt"): "an open file",
    ("data/sources/tiny_imagenet.py", "zipfile.ZipFile"): "an open file",
    ("data/sources/download.py", "tarfile.open"): "an open file",
    ("explore/run_view.py", "RunFolder.open"): "no file",
    ("cli/allocate.py", "CellRounds.open"): "no file",
    ("explore/workbench.py", "RunView.open"): "no file",
    ("longterm/comparison.py", "RunFolder.open"): "no file",
    ("longterm/trace.py", "RunFolder.open"): "no file",
    ("runs/compare.py", "RunFolder.open"): "no file",
    ("runs/run.py", "RunFolder.open"): "no file",
    ("runs/theory_snapshots.py", "RunFolder.open"): "no file",
}
OPENS = {"open", "read_text", "read_bytes", "load_file", "safe_open", "loadtxt", "genfromtxt", "fromfile"}
OPENS |= {"open_memmap", "ZipFile", "urlopen", "read_csv"}


def opening_calls() -> Iterator[tuple[str, str]]:
    """Every call in the package whose name opens files, but for those of ``fedwave.files``."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            call = node.func
            is_ours = isinstance(call, ast.Name) and call.id in ("read_text", "read_bytes")
            name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
            opens = name in OPENS or ast.unparse(call) in ("np.load", "torch.load", "numpy.load")
            if opens and not is_ours:
                text = ast.unparse(call)
                text = f"resources.files.{name}" if "resources.files(" in text else text
                yield file.relative_to(SOURCE).as_posix(), text


def test_nobody_opens_a_file_past_the_one_module_that_decides() -> None:
    assert set(opening_calls()) == set(EXCEPTIONS)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # a long path does not fit a socket's name


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (pipe, "it is a named pipe, not a regular file"),
        (device, "it is a device, not a regular file"),
        (listening, "No such device or address"),
        (folder, "Is a directory"),
    ],
)
@pytest.mark.parametrize("read", [open_file, read_bytes, read_text, open_to_append])
def test_what_is_no_regular_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], why: str, read: Callable[[Path], object]
) -> None:
    make(tmp_path / "it")
    before = list(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match=why):
        read(tmp_path / "it")
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)  # none is left open


def test_a_link_to_a_regular_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("é")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_text(tmp_path / "b") == "é"


def test_what_does_not_fit_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(OSError, match=r"it has 4 TiB, and at most .* are read") as caught:
        read_bytes(tmp_path / "huge")
    assert caught.value.errno == errno.EFBIG
    (tmp_path / "small").write_bytes(b"12345678")
    assert read_bytes(tmp_path / "small", largest=8) == b"12345678"
    with pytest.raises(OSError, match="it has 8 bytes, and at most 7 bytes are read"):
        read_bytes(tmp_path / "small", largest=7)
    monkeypatch.setattr(files, "memory_limit", lambda: 15)
    with pytest.raises(OSError, match="at most 7 bytes are read"):
        read_bytes(tmp_path / "small", largest=100)
    monkeypatch.setattr(files, "memory_limit", lambda: 16)
    assert read_text(tmp_path / "small") == "12345678"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert text_of(b"\xef\xbb\xbfround\n") == text_of(b"round\n") == "round\n"


@pytest.mark.parametrize("content", ["round".encode("utf-16"), "round".encode("utf-16-le"), b"a\0", b"\xff"])
def test_what_is_no_text_in_utf_8_is_refused(content: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        text_of(content)


@pytest.mark.parametrize("num_bytes", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 1 << 22])
def test_blocks_are_the_beginning_of_a_file(tmp_path: Path, num_bytes: int) -> None:
    content = os.urandom((1 << 21) + 5)
    (tmp_path / "it").write_bytes(content)
    with open_file(tmp_path / "it") as file:
        assert b"".join(blocks_of(file, num_bytes)) == content[:num_bytes]


def test_a_replaced_file_is_whole_or_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "it"
    replace_file(path, [b"one, ", b"two"])
    assert path.read_bytes() == b"one, two"

    def fails() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        replace_file(path, fails())
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"it": b"one, two"}


def test_what_a_kill_has_left_is_not_in_the_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".it.partial")
    replace_file(tmp_path / "it", [b"new"])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"it": b"new"}
