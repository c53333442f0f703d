"""BabelStream, and STREAM of a device: whose memory it is, its unit, and wrong sums."""

from __future__ import annotations

import pytest

from reported_kit import answer_of

BABEL = """\
BabelStream
Version: 5.0
Implementation: CUDA
Running kernels 100 times
Array size: 268.4 MB (=0.3 GB)
Using CUDA device NVIDIA A100-SXM4-40GB
{}Function    MBytes/sec  Min (sec)   Max         Average
Copy        {:.3f} 0.00038     0.00039     0.00039
Mul         1360437.756 0.00039     0.00040     0.00040
Triad       {:.3f} 0.00058     0.00060     0.00059
Dot         1353461.767 0.00040     0.00041     0.00040
"""


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "ok"), (0.5, "fail slow")])
def test_babelstream_is_judged_by_the_memory(share, verdict, tmp_path):
    answer = answer_of(tmp_path, BABEL.format("", share * 1310256.415, share * 1377517.491))
    assert f"device_memory_copy {1310.256 * share:.4g}" in answer
    assert f"verdict: {verdict}" in answer


def test_wrong_sums_of_babelstream_fail(tmp_path):
    failed = "Validation failed on a[]. Average error 28585402504.791607\n"
    answer = answer_of(tmp_path, BABEL.format(failed, 1400256.4, 1377517.5))
    assert "verdict: fail wrong-bytes" in answer
    assert "BabelStream says: Validation failed on a[]" in answer


def test_columns_of_babelstream_that_touch(tmp_path):
    answer = answer_of(tmp_path, BABEL.format("", 1.31e6, 1.31e6).replace("1310000.000 ", "1.31e6"))
    assert "device_memory_copy 1310 GB/s" in answer


def test_the_command_tells_that_a_device_streams(tmp_path):
    text = "Copy        14.707      0.03481     0.03481     0.03481\n"
    answer = answer_of(tmp_path, f"$ sudo ./ocl-stream --float\nFunction    MBytes/sec\n{text}")
    assert "device_memory_copy" in answer


def test_the_head_of_stream_tells_its_unit(tmp_path):
    text = """\
 STREAM Benchmark implementation in HIP
Function      Rate (GiB/s)  Avg time(s)  Min time(s)  Max time(s)
Copy:         354.2486      0.00294810   0.00282288   0.00406599
"""
    answer = answer_of(tmp_path, text)
    assert "380" in answer  # GB/s
    assert "all CPUs" not in answer


def test_a_device_and_the_cpus_in_one_text_of_babelstream(tmp_path):
    cpus = BABEL.replace("Using CUDA device NVIDIA A100-SXM4-40GB\n", "")
    text = BABEL.format("", 1.31e6, 1.3e6) + cpus.format("", 98e3, 99e3)
    answer = answer_of(tmp_path, text)
    assert "verdict: ok" in answer
    assert "98" not in answer.partition("Read from")[0]
