"""Cards, ports and nodes that are as built although they look slow, and texts without a figure."""

from __future__ import annotations

from command_kit import called


def answer_of(folder, text):
    (folder / "log.txt").write_text(text)
    done = called("judge", folder / "log.txt", COLUMNS=200)
    return " ".join((done.stdout + done.stderr).split())


OWN_GPU = """\
          RocmBandwidthTest Version: 2.6.0
          Device: 0,  AMD Ryzen 7 6800HS with Radeon Graphics
          Device: 1,  AMD Radeon RX 6700S,  GPU-XX,  03:0.0
          Device: 2,  {},  GPU-XX,  07:0.0
          Unidirectional copy peak bandwidth GB/s
          D/D       0           1           2
          0         N/A         14.186      30.722
          1         14.280      201.176     36.747
          2         30.161      35.270      58.392
"""


def test_a_gpu_without_a_name_is_no_peer_of_others(tmp_path):
    answer = answer_of(tmp_path, OWN_GPU.format(""))
    assert "verdict: not judged" in answer
    assert "peers" not in answer
    assert "verdict: fail slow" in answer_of(tmp_path, OWN_GPU.format("AMD Radeon RX 6700S"))


BOARD = """\
GPU 00000000:13:00.0
    Product Name                          : NVIDIA A16
    MultiGPU Board                        : {}
    PCI
        Bus Id                            : 00000000:13:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 4x
"""


def test_gpus_of_one_board_divide_the_lanes_of_its_slot(tmp_path):
    answer = answer_of(tmp_path, BOARD.format("Yes"))
    assert "GPU 0: its link has 4x of 16x lanes; it shares its board with other GPUs" in answer
    assert "Reseat" not in answer
    assert "Reseat the card" in answer_of(tmp_path, BOARD.format("No"))


PORT = """\
CA 'mlx4_0'
        Port 1:
                State: Active
                Rate: 14
# Port info: Lid 6 port 1
LinkWidthSupported:..............1X or 4X
LinkWidthEnabled:................{}
LinkWidthActive:.................{}
LinkSpeedExtActive:..............14.0625 Gbps
"""


def test_an_infiniband_port_may_use_fewer_lanes_than_it_has(tmp_path):
    narrow = "the InfiniBand port uses 1 of 4 lanes of 14 Gb/s each"
    limited = f"{narrow}, as LinkWidthEnabled allows no more"
    assert limited in answer_of(tmp_path, PORT.format("1X", "1X"))
    answer = answer_of(tmp_path, PORT.format("1X or 4X", "1X"))
    assert narrow in answer
    assert "LinkWidthEnabled" not in answer
    assert "lanes" not in answer_of(tmp_path, PORT.format("1X or 4X", "4X"))


NODES = """\
Intel(R) Memory Latency Checker - v3.10
Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using Read-only traffic type
                Numa node
Numa node            0       1       2       3
       0        99833.3 99794.2 76592.0 17594.0
       1        101196.7        101291.9        77137.2 17602.0
       2        76935.0 77621.6 101120.1        17587.8
"""


def test_a_node_without_cpus_is_no_other_socket(tmp_path):
    answer = answer_of(tmp_path, NODES)
    assert "Node 3 has memory and no CPUs, as CXL or HBM has: its 17.6 GB/s" in answer
    assert "Reads from the memory of another node reach 76.6 GB/s, 76% of" in answer


def test_a_refusal_names_the_tool_that_gave_no_figure(tmp_path):
    text = "# OSU MPI-CUDA Bandwidth Test v7.1\n# Size      Bandwidth (MB/s)\ncxil_map() failed\n"
    assert "OSU micro-benchmarks shows no figure there" in answer_of(tmp_path, text)
    sums = "SUM host_to_device_memcpy_ce 845.90\nSUM device_to_device_memcpy_read_ce 9222.82\n"
    assert "only sums of matrices are there" in answer_of(tmp_path, sums)
