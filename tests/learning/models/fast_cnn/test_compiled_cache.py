"""Whose libraries are loaded, and what becomes of damaged ones and of compilers that are broken or hang."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedwave import native_library
from fedwave.learning.models.fast_cnn import kernel_check
from fedwave.learning.models.fast_cnn.compiled import KERNELS
from fedwave.learning.models.fast_cnn.pooling import TorchPooling, pooling_for

ROOT = Path(__file__).parents[4]
NOBODY = 65534
IS_ROOT = os.geteuid() == 0

needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: torch alone is used")

PLANTED = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void run(void) {
    FILE *file = fopen(getenv("FEDWAVE_TEST_MARKER"), "w");
    if (file) fclose(file);
}
void fedwave_pool() {} void fedwave_unpool() {} void fedwave_pick() {}
void fedwave_patches() {} void fedwave_overlap() {}
"""


@dataclass(frozen=True)
class Libraries:
    """What may lie in a cache."""

    good: bytes  # the kernels
    planted: bytes  # a library that leaves a mark when it is loaded
    bare: bytes  # a library without the functions


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "planted.c").write_text(PLANTED)
    (folder / "bare.c").write_text("int nothing;")

    def built(source: Path, *flags: str) -> bytes:
        target = folder / f"{source.stem}.so"
        subprocess.run(["cc", *flags, "-o", str(target), str(source)], check=True)
        return target.read_bytes()

    plain = ("-shared", "-fPIC")
    return Libraries(
        built(KERNELS.file, *native_library.FLAGS),
        built(folder / "planted.c", *plain),
        built(folder / "bare.c", *plain),
    )


class Machine:
    """A user's machine: a cache, a compiler that hands out a library that was built before, and a mark."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, libraries: Libraries) -> None:
        self.cache, self.marker = folder / "cache", folder / "executed"
        self.compiler, self.calls = folder / "cc", folder / "calls"
        self.library = folder / "prebuilt.so"
        self.library.write_bytes(libraries.good)
        self.libraries = libraries
        self.says('cp "$library" "$out"')
        monkeypatch.delenv(native_library.SWITCH, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        monkeypatch.setenv("FEDWAVE_TEST_MARKER", str(self.marker))
        monkeypatch.setattr(native_library, "_compiler", lambda: str(self.compiler))

    def says(self, script: str) -> None:
        """Have another compiler, whose output file is $out."""
        start = f'#!/bin/sh\necho call >> "{self.calls}"\nlibrary="{self.library}"\n'
        find_output = 'while [ "$1" != "-o" ]; do shift; done\nout="$2"\n'
        self.compiler.unlink(missing_ok=True)
        self.compiler.write_text(f"{start}{find_output}{script}\n")
        self.compiler.chmod(0o755)

    def num_calls(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    @property
    def folder(self) -> Path:
        return self.cache / "fedwave" / "compiled"

    def name_of(self, content: bytes) -> str:
        made_of = "\n".join([KERNELS.file.read_text(), *native_library.FLAGS, native_library._processor()])
        key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
        return f"kernels-{key}-{hashlib.sha256(content).hexdigest()}.so"

    def plant(self, content: bytes, *, name: str | None = None) -> Path:
        """Put a library where one is looked for."""
        for path in (self.cache, self.cache / "fedwave", self.folder):
            path.mkdir(mode=0o700, exist_ok=True)
        file = self.folder / (name or self.name_of(content))
        file.write_bytes(content)
        file.chmod(0o600)
        return file

    def assert_right(self) -> None:
        """Start anew: nothing planted is executed, and the kernels compute what they should."""
        native_library._library.cache_clear()
        library = native_library.library(KERNELS)
        assert not self.marker.exists()
        assert library is not None
        assert kernel_check.digest_of(kernel_check.results(library)) == kernel_check.RIGHT_DIGEST

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: Libraries) -> Iterator[Machine]:
    yield Machine(tmp_path, monkeypatch, libraries)
    native_library._library.cache_clear()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, logger="fedwave")
    return caplog


def test_a_planted_library_of_ones_own_would_leave_its_mark(machine: Machine) -> None:
    machine.plant(machine.libraries.planted)
    native_library._library.cache_clear()
    native_library.library(KERNELS)
    assert machine.marker.exists()  # or the tests below would show nothing


class TestWhatIsKept:
    def test_it_is_built_once_and_loaded_from_then_on(
        self, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.assert_right()
        assert machine.kept() == [machine.name_of(machine.libraries.good)]
        machine.assert_right()
        assert machine.num_calls() == 1
        assert said.messages == []

    def test_another_processor_has_another(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        machine.assert_right()
        monkeypatch.setattr(native_library, "_processor", lambda: "another")
        machine.assert_right()
        assert machine.num_calls() == 2
        assert len(machine.kept()) == 2

    def test_it_is_this_users_alone_whatever_the_umask(self, machine: Machine) -> None:
        before = os.umask(0)
        try:
            machine.assert_right()
        finally:
            os.umask(before)
        folders = [machine.cache, machine.cache / "fedwave", machine.folder]
        assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o700] * 3
        (file,) = machine.folder.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_relative_cache_is_ignored(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", "cache")
        machine.assert_right()
        assert not machine.cache.exists()
        assert len(list((tmp_path / "home").rglob("kernels-*.so"))) == 1

    def test_a_system_without_open_files_by_number_loads_a_copy(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(native_library, "_OPEN_FILES", Path("/nowhere"))
        machine.assert_right()
        machine.assert_right()
        assert machine.num_calls() == 1

    def test_what_is_kept_is_loaded_without_a_temporary_folder(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.assert_right()
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        machine.assert_right()

    def test_four_at_once(self, machine: Machine) -> None:
        found: list[object] = []
        gate = threading.Barrier(4)

        def load() -> None:
            gate.wait()
            found.append(native_library._library.__wrapped__(KERNELS))

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert None not in found
        assert machine.kept() == [machine.name_of(machine.libraries.good)]


class TestDamagedLibraries:
    @pytest.mark.parametrize("part", [0, 1, 63, 64, 4095, 4096, 8192, 0.5, 0.9, -1])
    def test_a_truncated_one_is_built_again(self, part: float, machine: Machine) -> None:
        whole = machine.libraries.good
        length = len(whole) - 1 if part == -1 else int(part * len(whole)) if 0 < part < 1 else int(part)
        machine.plant(whole[:length], name=machine.name_of(whole))
        machine.assert_right()
        assert machine.num_calls() == 1
        assert machine.kept() == [machine.name_of(whole)]
        assert (machine.folder / machine.kept()[0]).read_bytes() == whole

    def test_one_with_a_changed_bit_is_built_again(self, machine: Machine) -> None:
        changed = bytearray(machine.libraries.good)
        changed[len(changed) // 2] ^= 1
        machine.plant(bytes(changed), name=machine.name_of(machine.libraries.good))
        machine.assert_right()
        assert machine.num_calls() == 1

    @pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF garbage"])
    def test_garbage_that_was_kept_is_built_again(self, content: bytes, machine: Machine) -> None:
        file = machine.plant(content)
        machine.assert_right()
        assert not file.exists()

    def test_one_without_the_functions_is_built_again(self, machine: Machine) -> None:
        file = machine.plant(machine.libraries.bare)
        machine.assert_right()
        assert not file.exists()
        assert machine.num_calls() == 1

    def test_a_pipe_is_not_waited_for(self, machine: Machine) -> None:
        file = machine.plant(machine.libraries.good)
        file.unlink()
        os.mkfifo(file)
        machine.assert_right()
        assert machine.num_calls() == 1
        assert file.is_file()

    def test_a_folder_in_its_place_is_left_alone(
        self, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        file = machine.plant(machine.libraries.good)
        file.unlink()
        file.mkdir()
        machine.assert_right()
        assert len(said.messages) == 1
        assert said.messages[0].startswith("the cache is not used (")


class TestLibrariesOfOthers:
    def assert_built_elsewhere(self, machine: Machine, said: pytest.LogCaptureFixture, reason: str) -> None:
        machine.assert_right()
        assert said.messages == [
            f"the cache is not used ({reason}); the CNN's kernels are built for this process alone. "
            "Mend the folder, or set XDG_CACHE_HOME to one of your own."
        ]

    @needs_root
    @pytest.mark.parametrize("place", ["fedwave", "fedwave/compiled"])
    def test_a_folder_of_another_user(
        self, place: str, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.plant(machine.libraries.planted)
        machine.cache.chmod(0o1777)  # a shared one
        os.chown(machine.cache / place, NOBODY, NOBODY)
        reason = f"{machine.cache / place} belongs to another user (number {NOBODY})"
        self.assert_built_elsewhere(machine, said, reason)

    @pytest.mark.parametrize("place", ["fedwave", "fedwave/compiled"])
    def test_a_folder_that_others_can_write_to(
        self, place: str, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.plant(machine.libraries.planted)
        path = machine.cache / place
        path.chmod(0o777)
        self.assert_built_elsewhere(machine, said, f"others can write to {path}: chmod go-w {path}")

    def test_a_folder_that_is_a_link(
        self, machine: Machine, said: pytest.LogCaptureFixture, tmp_path: Path
    ) -> None:
        machine.plant(machine.libraries.planted)
        (machine.cache / "fedwave").rename(tmp_path / "elsewhere")
        (machine.cache / "fedwave").symlink_to(tmp_path / "elsewhere")
        reason = f"{machine.cache / 'fedwave'} is not a folder that can be used (Not a directory)"
        self.assert_built_elsewhere(machine, said, reason)

    @needs_root
    def test_a_file_of_another_user(self, machine: Machine) -> None:
        os.chown(machine.plant(machine.libraries.planted), NOBODY, NOBODY)
        machine.assert_right()

    def test_a_file_that_others_can_write_to(self, machine: Machine) -> None:
        machine.plant(machine.libraries.planted).chmod(0o666)
        machine.assert_right()

    def test_a_file_with_a_second_name(self, machine: Machine, tmp_path: Path) -> None:
        os.link(machine.plant(machine.libraries.planted), tmp_path / "second")
        machine.assert_right()

    def test_a_link_to_a_file(self, machine: Machine, tmp_path: Path) -> None:
        machine.plant(machine.libraries.planted).rename(tmp_path / "elsewhere.so")
        name = machine.name_of(machine.libraries.planted)
        (machine.folder / name).symlink_to(tmp_path / "elsewhere.so")
        machine.assert_right()
        assert (tmp_path / "elsewhere.so").exists()


FOLDER_FLAWS = ("mode 0775", "mode 0777", "link", "file", "pipe", *(["owner"] if IS_ROOT else []))
FILE_FLAWS = ("mode 0620", "mode 0606", "link", "second name", "digest", *(["owner"] if IS_ROOT else []))
HARMLESS = ("good", "bare", "empty", "garbage", "cut", "pipe", "folder")


@st.composite
def caches(draw: st.DrawFn) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Flaws of folders, and files with a flaw each; a planted library has one, or its folder has."""
    flaws = draw(st.dictionaries(st.sampled_from(["fedwave", "compiled"]), st.sampled_from(FOLDER_FLAWS)))
    harmless = st.tuples(st.sampled_from(HARMLESS), st.sampled_from(("none", *FILE_FLAWS)))
    foreign = st.tuples(st.just("planted"), st.sampled_from(FILE_FLAWS + (("none",) if flaws else ())))
    return flaws, draw(st.lists(harmless | foreign, max_size=3, unique_by=lambda file: file[0]))


def put_file(machine: Machine, content: str, flaw: str, cut: int) -> None:
    whole = machine.libraries.good
    bytes_of = {
        "good": whole,
        "bare": machine.libraries.bare,
        "planted": machine.libraries.planted,
        "cut": whole[:cut],
    }
    written = bytes_of.get(content, b"" if content == "empty" else b"garbage")
    name = machine.name_of(whole if content == "cut" or flaw == "digest" else written)
    if (machine.folder / name).exists():
        return
    file = machine.plant(written, name=name)
    if content in ("pipe", "folder"):
        file.unlink()
        os.mkfifo(file, 0o600) if content == "pipe" else file.mkdir()
    elif flaw.startswith("mode"):
        file.chmod(int(flaw.split()[1], 8))
    elif flaw == "owner":
        os.chown(file, NOBODY, NOBODY)
    elif flaw in ("link", "second name"):
        other = machine.cache.parent / f"other-{name}"
        file.rename(other)
        file.symlink_to(other) if flaw == "link" else os.link(other, file)


def spoil_folder(path: Path, flaw: str) -> None:
    if flaw.startswith("mode"):
        path.chmod(int(flaw.split()[1], 8))
    elif flaw == "owner":
        os.chown(path, NOBODY, NOBODY)
    else:
        moved = path.rename(path.with_name(f"moved-{path.name}"))
        if flaw == "link":
            path.symlink_to(moved)
        elif flaw == "file":
            path.touch()
        else:
            os.mkfifo(path)


def assert_nothing_foreign_runs(
    cache: tuple[dict[str, str], list[tuple[str, str]]],
    cut: int,
    libraries: Libraries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flaws, files = cache
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), monkeypatch, libraries)
        for path in (machine.cache, machine.cache / "fedwave", machine.folder):
            path.mkdir(mode=0o700)
        for content, flaw in files:
            put_file(machine, content, flaw, cut)
        for name in ("compiled", "fedwave"):
            if name in flaws:
                spoil_folder(machine.folder if name == "compiled" else machine.cache / name, flaws[name])
        machine.assert_right()
        machine.assert_right()
    native_library._library.cache_clear()


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(cache=caches(), cut=st.integers(0, 30_000))
def test_whatever_the_cache_holds_nothing_foreign_runs_and_results_are_right(
    cache: tuple[dict[str, str], list[tuple[str, str]]],
    cut: int,
    libraries: Libraries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_nothing_foreign_runs(cache, cut, libraries, monkeypatch)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(cache=caches(), cut=st.integers(0, 30_000))
def test_in_hundreds_of_caches_nothing_foreign_runs_and_results_are_right(
    cache: tuple[dict[str, str], list[tuple[str, str]]],
    cut: int,
    libraries: Libraries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_nothing_foreign_runs(cache, cut, libraries, monkeypatch)


class TestCompilers:
    def assert_none(self, machine: Machine, said: pytest.LogCaptureFixture, reason: str) -> None:
        native_library._library.cache_clear()
        said.clear()
        assert native_library.library(KERNELS) is None
        assert isinstance(pooling_for(torch.zeros(1)), TorchPooling)
        assert said.messages == [
            f"the CNN's kernels were not built ({reason}); torch alone is slower, to the same bits. "
            "Mend the C compiler, or set FEDWAVE_COMPILE=0 to do without it."
        ]
        assert not machine.marker.exists()
        assert not [name for name in machine.kept() if name.startswith(("kernels", ".draft"))]

    def test_the_switch_turns_them_off(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(native_library.SWITCH, "0")
        native_library._library.cache_clear()
        assert native_library.library(KERNELS) is None
        assert not machine.cache.exists()

    def test_none_at_all_is_nothing_to_speak_of(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(native_library, "_compiler", lambda: None)
        native_library._library.cache_clear()
        assert native_library.library(KERNELS) is None
        machine.folder.chmod(0o777)
        native_library._library.cache_clear()
        assert native_library.library(KERNELS) is None
        assert said.messages == []

    def test_the_real_one_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert native_library._compiler() == shutil.which("cc")
        monkeypatch.setattr(shutil, "which", lambda name: "/bin/clang" if name == "clang" else None)
        assert native_library._compiler() == "/bin/clang"

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("exit 1", "{cc} ended with code 1"),
            ("exit 0", "{cc} made no library"),
            ('mkfifo "$out"', "{cc} made no library"),
            ("kill -9 $$", "{cc} ended with code -9"),
            ('echo garbage > "$out"', "{python} ended with code 1"),
            (': > "$out"', "{python} ended with code 1"),
            ('head -c 1500 "$library" > "$out"', "{python} ended with code"),
            ('head -c 8192 "$library" > "$out"', "{python} ended with code"),
        ],
    )  # fmt: skip
    def test_what_a_broken_one_makes_is_not_kept_and_a_good_one_is_asked_again(
        self, script: str, reason: str, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.says(script)
        native_library._library.cache_clear()
        assert native_library.library(KERNELS) is None
        (line,) = said.messages
        expected = reason.format(cc=machine.compiler, python=sys.executable)
        assert line.startswith(f"the CNN's kernels were not built ({expected}"), line
        assert machine.kept() == []
        machine.says('cp "$library" "$out"')
        machine.assert_right()

    def test_a_library_without_the_functions_is_not_kept(
        self, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.library.write_bytes(machine.libraries.bare)
        self.assert_none(machine, said, f"{sys.executable} ended with code 1")

    def test_a_library_with_other_results_is_not_kept(
        self, machine: Machine, said: pytest.LogCaptureFixture, tmp_path: Path
    ) -> None:
        source = tmp_path / "wrong.c"
        source.write_text(KERNELS.file.read_text().replace("most += bias[c]", "most -= bias[c]"))
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(machine.library), str(source)], check=True)
        self.assert_none(machine, said, "the library gives wrong results")

    def test_one_that_hangs_costs_once_and_leaves_nothing_running(
        self,
        machine: Machine,
        said: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr(native_library, "PATIENCE_S", 0.5)
        machine.says(f'sleep 1000 & echo $! > "{tmp_path}/pid"\nwait')
        self.assert_none(machine, said, f"{machine.compiler} did not end within 0.5 s")
        sleeping = int((tmp_path / "pid").read_text())
        wait_until_ended(sleeping)
        (memory,) = machine.kept()
        reason = f"{machine.compiler} once did not end; remove {machine.folder / memory} to try it again"
        self.assert_none(machine, said, reason)
        assert machine.num_calls() == 1
        machine.says('cp "$library" "$out"')  # another compiler
        monkeypatch.setattr(native_library, "PATIENCE_S", 30.0)
        machine.assert_right()
        assert machine.num_calls() == 2

    def test_a_library_that_hangs_costs_once(
        self,
        machine: Machine,
        said: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr(native_library, "PATIENCE_S", 0.5)
        source = tmp_path / "endless.c"
        source.write_text("__attribute__((constructor)) static void run(void) { for (;;) {} }")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(machine.library), str(source)], check=True)
        self.assert_none(machine, said, f"{machine.compiler} did not end within 0.5 s")
        assert len(machine.kept()) == 1

    def test_a_cache_that_cannot_be_written_costs_a_build(
        self, machine: Machine, said: pytest.LogCaptureFixture
    ) -> None:
        machine.cache.touch()
        machine.assert_right()
        assert len(said.messages) == 1
        assert said.messages[0].startswith("the cache is not used ([Errno 20] Not a directory")


def wait_until_ended(number: int) -> None:
    for _ in range(200):
        try:
            if psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        time.sleep(0.01)
    pytest.fail(f"process {number} still runs")


@pytest.mark.processes
def test_four_processes_at_once_build_and_load(tmp_path: Path) -> None:
    code = (
        "from fedwave.learning.models.fast_cnn.compiled import KERNELS; "
        "from fedwave.native_library import library; print(library(KERNELS) is not None)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop(native_library.SWITCH, None)
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in started] == ["True\n"] * 4
    assert len(list((tmp_path / "fedwave" / "compiled").iterdir())) == 1
