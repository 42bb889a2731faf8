"""The client's own file system: files written and read through filesets, as data scientists do it."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, Fileset, GravitinoClient, NameIdentifier, gvfs

from harness import Server

ORDERS = NameIdentifier.of("sales", "orders")
ROOT = "gvfs://fileset/files/sales/orders"


@pytest.fixture
def file_system(server: Server, metalake: GravitinoClient, files: Catalog) -> gvfs.GravitinoVirtualFileSystem:
    """The file system of the test's own metalake, in which there is one fileset."""
    files.as_fileset_catalog().create_fileset(ORDERS, None, Fileset.Type.MANAGED, None, {})
    name = metalake.get_metalake().name()
    return gvfs.GravitinoVirtualFileSystem(
        server_uri=server.uri, metalake_name=name, skip_instance_cache=True
    )


def test_a_file_that_is_written_lies_in_the_fileset_s_directory_and_is_read_back(
    file_system: gvfs.GravitinoVirtualFileSystem, tmp_path: Path
) -> None:
    file_system.makedirs(f"{ROOT}/2026/day=1")
    with file_system.open(f"{ROOT}/2026/day=1/part 0.txt", mode="wb") as file:
        file.write(b"content")
    place = tmp_path / "files" / "sales" / "orders"
    assert (place / "2026" / "day=1" / "part 0.txt").read_bytes() == b"content"
    assert file_system.cat_file(f"{ROOT}/2026/day=1/part 0.txt") == b"content"
    assert file_system.exists(f"{ROOT}/2026")
    assert not file_system.exists(f"{ROOT}/2027")
    assert len(file_system.ls(f"{ROOT}/2026", detail=False)) == 1


def test_files_are_moved_and_removed_inside_the_fileset_and_the_fileset_itself_is_not_renamed(
    file_system: gvfs.GravitinoVirtualFileSystem, tmp_path: Path
) -> None:
    place = tmp_path / "files" / "sales" / "orders"
    (place / "a.txt").write_text("a")
    file_system.mv(f"{ROOT}/a.txt", f"{ROOT}/b.txt")
    assert sorted(path.name for path in place.iterdir()) == ["b.txt"]
    file_system.rm(f"{ROOT}/b.txt")
    assert list(place.iterdir()) == []
