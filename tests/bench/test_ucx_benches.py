"""The comparisons of copies by UCX: the plain program, and what is made of the rates."""

import shutil

import pytest

import ucx_programs

needs_wheel = pytest.mark.skipif(
    ucx_programs.libucx() is None or shutil.which("gcc") is None, reason="no gcc, or no libucx"
)


@needs_wheel
@pytest.mark.parametrize("direction", ["put", "get"])
def test_the_plain_program_moves_bytes_and_checks_them(tmp_path, direction):
    program = ucx_programs.compiled(tmp_path)
    shared = {"UCX_TLS": "posix,sysv,cma,self"}
    assert ucx_programs.plain(program, "huge", 1 << 16, 4, 0.0, shared, direction) > 0
