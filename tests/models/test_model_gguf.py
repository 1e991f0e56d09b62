from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models import ModelError
from harness.models.gguf import trained_window


def write(folder: Path, content: bytes) -> Path:
    path = folder / "m.gguf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("window", [8192, 32768, None])
def test_the_context_length_is_read_past_a_vocabulary(tmp_path: Path, make_gguf, window):
    assert trained_window(write(tmp_path, make_gguf(b"tensors", window=window))) == window


def test_a_header_cut_anywhere_is_one_error(tmp_path: Path, make_gguf):
    whole = make_gguf()
    for end in range(len(whole)):
        with pytest.raises(ModelError) as caught:
            trained_window(write(tmp_path, whole[:end]))
        assert "m.gguf" in str(caught.value)


def test_another_format_is_named(tmp_path: Path):
    with pytest.raises(ModelError, match="not a GGUF file"):
        trained_window(write(tmp_path, b"PK\x03\x04"))


@given(st.binary(max_size=200), st.integers(0, 200), st.booleans())
def test_no_bytes_break_the_reader(tmp_path_factory, make_gguf, noise, at, keep_head):
    whole = make_gguf()
    content = whole[:at] + noise + whole[at:] if keep_head else b"GGUF" + noise
    try:
        found = trained_window(write(tmp_path_factory.getbasetemp(), content))
    except ModelError:
        return
    assert found is None or isinstance(found, int)
