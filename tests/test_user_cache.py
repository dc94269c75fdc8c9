"""What is believed of a cache: owners, modes, links and pipes; files are kept whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fedwave.user_cache import PrivateFolder, cache_root, private_folder

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fedwave" / "inner").mkdir(parents=True, mode=0o700)
    return tmp_path


class TestTheRoot:
    def test_it_is_the_absolute_folder_of_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
        assert cache_root() == Path("/some/where")

    @pytest.mark.parametrize("given", ["", "relative/cache", "~/cache", None])
    def test_a_relative_one_is_ignored(self, given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("HOME", "/home/me")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if given is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache_root() == Path("/home/me/.cache")

    def test_no_home_is_an_error_of_the_system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", none)
        with pytest.raises(OSError, match=r"there is no home folder: set HOME$"):
            cache_root()


class TestFolders:
    @pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
    def test_they_are_made_for_this_user_alone_whatever_the_umask(self, umask: int, tmp_path: Path) -> None:
        before = os.umask(umask)
        try:
            with private_folder(tmp_path / "a" / "b", "c", "d") as folder, folder.draft(b"x") as draft:
                folder.keep(draft, "file")
        finally:
            os.umask(before)
        made = [tmp_path / name for name in ("a", "a/b", "a/b/c", "a/b/c/d")]
        assert [mode_of(path) for path in made] == [0o700] * 4
        assert mode_of(tmp_path / "a/b/c/d/file") == 0o600
        assert folder.path == made[-1]

    def test_none_is_made_where_one_only_looks(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError), private_folder(tmp_path, "fedwave", is_made=False):
            pass
        with pytest.raises(FileNotFoundError), private_folder(tmp_path / "no", is_made=False):
            pass
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("place", ["fedwave", "fedwave/inner"])
    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
    def test_one_that_others_can_write_to_is_refused(self, mode: int, place: str, root: Path) -> None:
        (root / place).chmod(mode)
        expected = rf"^others can write to {root / place}: chmod go-w {root / place}$"
        with pytest.raises(PermissionError, match=expected), private_folder(root, "fedwave", "inner"):
            pass

    def test_one_that_others_can_read_is_used(self, root: Path) -> None:
        (root / "fedwave").chmod(0o755)
        with private_folder(root, "fedwave", "inner") as folder:
            assert folder.names() == []

    @needs_root
    @pytest.mark.parametrize("place", ["fedwave", "fedwave/inner"])
    def test_one_of_another_user_is_refused(self, place: str, root: Path) -> None:
        os.chown(root / place, NOBODY, NOBODY)
        expected = rf"^{root / place} belongs to another user \(number {NOBODY}\)$"
        with pytest.raises(PermissionError, match=expected), private_folder(root, "fedwave", "inner"):
            pass

    @needs_root
    def test_a_sticky_root_of_all_users_is_as_good_as_what_is_in_it(self, root: Path) -> None:
        root.chmod(0o1777)
        os.chown(root, NOBODY, NOBODY)
        with private_folder(root, "fedwave", "inner"):
            pass
        os.chown(root / "fedwave", NOBODY, NOBODY)
        with pytest.raises(PermissionError), private_folder(root, "fedwave", "inner"):
            pass

    @pytest.mark.parametrize("is_made", [True, False])
    def test_links_files_and_pipes_are_no_folders(self, is_made: bool, root: Path) -> None:
        (root / "link").symlink_to(root / "fedwave")
        (root / "dangling").symlink_to(root / "nothing")
        (root / "file").touch()
        os.mkfifo(root / "pipe")
        for name in ("link", "dangling", "file", "pipe"):
            with (
                pytest.raises(PermissionError, match=rf"^{root / name} is not a folder that can be used \("),
                private_folder(root, name, is_made=is_made),
            ):
                pass
        assert not (root / "nothing").exists()

    def test_a_root_may_be_a_link(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").symlink_to(root)
        with private_folder(tmp_path / "elsewhere", "fedwave", "inner"):
            pass

    def test_nothing_stays_open(self, root: Path) -> None:
        before = open_files()
        with private_folder(root, "fedwave", "inner") as folder, folder.draft(b"x") as draft:
            with folder.reading(draft):
                pass
            os.link(root / "fedwave/inner" / draft, root / "second")
            with pytest.raises(PermissionError), folder.reading(draft):
                pass
        (root / "fedwave" / "inner").chmod(0o777)
        with pytest.raises(PermissionError), private_folder(root, "fedwave", "inner"):
            pass
        assert open_files() == before

    def test_a_system_without_owners_has_none(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "geteuid")
        with pytest.raises(PermissionError, match=r"does not tell whose"), private_folder(root, "fedwave"):
            pass


class TestFiles:
    @pytest.fixture
    def folder(self, root: Path):
        with private_folder(root, "fedwave") as folder:
            yield folder

    def put(self, folder: PrivateFolder, name: str = "file") -> Path:
        path = folder.path / name
        path.write_bytes(b"content")
        path.chmod(0o644)
        return path

    def assert_refused(self, folder: PrivateFolder, reason: str) -> None:
        with pytest.raises(OSError, match=reason), folder.reading("file"):
            pass

    def test_a_plain_one_is_read(self, folder: PrivateFolder) -> None:
        self.put(folder)
        with folder.reading("file") as descriptor:
            assert os.read(descriptor, 100) == b"content"

    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_one_that_others_can_write_to_is_refused(self, mode: int, folder: PrivateFolder) -> None:
        self.put(folder).chmod(mode)
        self.assert_refused(folder, r"^others can write to ")

    @needs_root
    def test_one_of_another_user_is_refused(self, folder: PrivateFolder) -> None:
        os.chown(self.put(folder), NOBODY, NOBODY)
        self.assert_refused(folder, r"belongs to another user")

    def test_one_with_a_second_name_is_refused(self, folder: PrivateFolder, tmp_path: Path) -> None:
        os.link(self.put(folder), tmp_path / "second")
        self.assert_refused(folder, r"is not a plain file with one name$")

    def test_links_pipes_and_folders_are_refused_without_waiting(self, folder: PrivateFolder) -> None:
        (folder.path / "file").symlink_to(self.put(folder, "other"))
        self.assert_refused(folder, r"symbolic link")
        folder.remove("file")
        os.mkfifo(folder.path / "file")
        self.assert_refused(folder, r"is not a plain file")
        folder.remove("file")
        (folder.path / "file").mkdir()
        self.assert_refused(folder, r"is not a plain file")

    def test_a_draft_that_is_not_kept_is_gone(self, folder: PrivateFolder) -> None:
        with folder.draft(b"half") as draft:
            assert draft in folder.names()
            assert (folder.path / draft).read_bytes() == b"half"
        with pytest.raises(KeyboardInterrupt), folder.draft(b"half"):
            raise KeyboardInterrupt
        assert folder.names() == ["inner"]

    def test_a_draft_that_is_kept_replaces_what_was_there(self, folder: PrivateFolder) -> None:
        self.put(folder)
        with folder.draft(b"new") as draft:
            folder.keep(draft, "file")
        assert folder.names() == ["file", "inner"]
        assert (folder.path / "file").read_bytes() == b"new"

    def test_an_exchanged_folder_is_not_the_one_that_was_looked_at(self, folder: PrivateFolder) -> None:
        self.put(folder)
        folder.path.rename(folder.path.with_name("moved"))
        folder.path.mkdir()
        (folder.path / "file").write_bytes(b"of somebody else")
        with folder.reading("file") as descriptor:
            assert os.read(descriptor, 100) == b"content"
