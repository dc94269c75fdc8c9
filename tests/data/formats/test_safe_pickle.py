from __future__ import annotations

import os
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedwave.data.formats.safe_pickle import read_byte_pickle
from fedwave.errors import DataError


class Malicious:
    """Unpickled by Python's own reader, it creates a file."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_code_in_a_pickle_is_refused_and_never_runs(protocol, tmp_path):
    trace = tmp_path / "the-code-ran"
    content = pickle.dumps({"data": Malicious(os.mkdir, str(trace))}, protocol=protocol)
    (tmp_path / "evil").write_bytes(content)
    with pytest.raises(
        DataError, match=r"is refused: its pickle asks for (posix|nt|os).mkdir, which image data never"
    ):
        read_byte_pickle(tmp_path / "evil", dataset="cifar-10")
    assert not trace.exists()
    pickle.loads(content)  # noqa: S301 - the attack works on the ordinary reader, so the test means something
    assert trace.exists()


@pytest.mark.parametrize(
    "name",
    [
        b"builtins eval",
        b"builtins getattr",
        b"__builtin__ exec",
        b"os system",
        b"numpy load",
        b"numpy.core.multiarray fromfile",
        b"numpy ndarray.tofile",
        b"fedwave.data.formats.safe_pickle read_byte_pickle",
    ],
)
def test_only_the_names_of_a_byte_array_are_known(name, tmp_path):
    module, attribute = name.split()
    (tmp_path / "evil").write_bytes(b"\x80\x02c" + module + b"\n" + attribute + b"\n.")
    with pytest.raises(DataError, match="is refused: its pickle asks for"):
        read_byte_pickle(tmp_path / "evil", dataset="cifar-10")


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_arrays_written_by_this_python_are_read_back(protocol, tmp_path):
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": values, "labels": [1, 2, 3]}, protocol=protocol))
    content = read_byte_pickle(tmp_path / "batch", dataset="cifar-10")
    assert np.array_equal(content["data"], values)
    assert content["labels"] == [1, 2, 3]


def test_arrays_as_python_2_wrote_them_are_read(tmp_path):
    python_2 = (
        b"\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x02K\x03\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89U\x06abcdeftbs."
    )
    (tmp_path / "batch").write_bytes(python_2)
    expected = np.frombuffer(b"abcdef", dtype=np.uint8).reshape(2, 3)
    assert np.array_equal(read_byte_pickle(tmp_path / "batch", dataset="cifar-10")["data"], expected)


def test_a_shape_that_does_not_fit_the_bytes_is_refused(tmp_path):
    content = pickle.dumps({"data": np.zeros((2, 3), np.uint8)}, protocol=2)
    assert content.count(b"K\x02K\x03\x86") == 1
    (tmp_path / "batch").write_bytes(content.replace(b"K\x02K\x03\x86", b"K\x7fK\x03\x86"))
    with pytest.raises(DataError, match=r"array of shape \(127, 3\) with 6 bytes"):
        read_byte_pickle(tmp_path / "batch", dataset="cifar-10")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damage_escapes_as_anything_but_a_data_error(data, tmp_path: Path):
    content = bytearray(
        pickle.dumps({"data": np.arange(40, dtype=np.uint8), "labels": list(range(9))}, protocol=2)
    )
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "batch").write_bytes(content)
    with suppress(DataError):  # some damage changes only values; that is for the checksum to find
        read_byte_pickle(tmp_path / "batch", dataset="cifar-10")
