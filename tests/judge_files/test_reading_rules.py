"""What is read in a text follows from its own heads, names and units."""

import gzip
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.descriptions import describe, read_bytes
from linkgauge.rooms.judge_files.facts import Facts, ReportedGpu, merged
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.products import product_of, split_product
from linkgauge.rooms.judge_files.readers import read_text

LOGS = Path(__file__).parents[1] / "data/judge/logs"
HEAD = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
ROW = "1073741824 268435456 float sum -1 {} 27.14 47.50 0 {} 27.14 47.50 0\n"
RANK = "#  Rank  {0} Group  0 Pid 100 on node1 device  {0} [0x1{0}] NVIDIA GeForce RTX 4090\n"


def log_of(text):
    (log,) = read_text("log", text)[0].logs
    return log


def facts_of(text):
    return merged(read_text("text", text)[0].facts)[0]


@pytest.mark.parametrize(("unit", "time"), [("us", "39558.9"), ("ms", "39.5589"), ("s", "0.0396")])
def test_unit_of_times_stands_in_the_head(unit, time):
    units = f"# (B) (elements) ({unit}) (GB/s) (GB/s)\n"
    figures = log_of(HEAD + units + ROW.format(time, time)).figures
    assert [one.figure for one in figures] == pytest.approx([0.03956, 0.03956], rel=2e-3)


def test_a_line_whose_columns_contradict_is_left_out():
    log = log_of(RANK.format(0) + HEAD + ROW.format("39558.9", "39558.9") + ROW.format("27", "27"))
    assert len(log.figures) == 2
    assert log.remarks == (
        "1 line left out, whose time and algbw do not give its size: 1073741824",
    )


def test_a_table_without_its_head_is_read_and_said_to_be():
    log = log_of(ROW.format("39558.9", "39558.9"))
    assert len(log.figures) == 2
    assert "without its head" in log.remarks[0]


def test_ranks_of_a_cut_list_follow_from_the_bandwidths():
    """busbw by algbw is 1.75: eight ranks, of which the list has two."""
    text = RANK.format(0) + RANK.format(1) + HEAD + ROW.format("39558.9", "39558.9")
    assert {one.ranks for one in log_of(text).figures} == {8}


def test_impossible_figures_are_left_out_and_named():
    rows = "           0\n 0     {}\n\nSUM host_to_device_memcpy_ce {}"
    title = (
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    )
    log = log_of(title + rows.format("39558.91", "39558.91"))
    assert not log.figures
    assert "more than any hardware has: host_to_device_memcpy_ce" in " ".join(log.remarks)


def test_a_text_of_fewer_accelerators_deletes_no_figure():
    lines = [f"{a} " + " ".join("50.0" if a != b else "900.0" for b in range(8)) for a in range(8)]
    matrix = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D 0 1 2 3 4 5 6 7\n"
    table = "".join(map(RANK.format, range(4))) + HEAD
    table += "1073741824 268435456 float sum -1 63624 16.88 25.31 0 63640 16.87 25.31 0\n"
    run = run_of_texts(read_text("log", matrix + "\n".join(lines) + "\n\n" + table), None, "x")
    assert len(run.machine.all_devices) == 8
    assert sum(len(one.cells) for one in run.results) == 8 * 7 + 2


def test_ranks_without_names_are_of_hosts_of_eight():
    text = (LOGS / "nccl-without-ranks.txt").read_text()
    run = run_of_texts(read_text("log", text), None, "x")
    assert len(run.machine.ranks) == 96
    assert any("12 hosts with 8 accelerators each" in one for one in run.tool.assumed)


def test_sizes_are_no_places():
    figures = log_of((LOGS / "imb-pingpong.txt").read_text()).figures
    assert {one.place for one in figures} == {("0", "1")}
    assert [one.size for one in figures] == [262144, 524288]


def test_latencies_are_no_row_of_rblns_matrix():
    figures = log_of((LOGS / "rbln-with-latencies.txt").read_text()).figures
    assert min(one.figure for one in figures) > 50e9


def test_small_blocks_are_said_to_stay_in_the_cache():
    text = (LOGS / "sysbench-memory.txt").read_text()
    assert "stay in the cache" in log_of(text).remarks[0]
    assert not log_of(text.replace("1KiB", "1GiB")).remarks


def test_a_peak_of_all_nodes_is_compared_with_all_nodes():
    log = log_of((LOGS / "mlc-two-sockets.txt").read_text())
    peak = next(one for one in log.figures if one.benchmark == "memory_reads")
    assert peak.host.work == "host:0 -> null by host:0.cpu & host:1 -> null by host:1.cpu"


def test_a_programming_interface_is_no_model():
    name = "01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)"
    facts = facts_of(f"{name} (prog-if 00 [VGA controller])\n\tLnkSta:\tSpeed 16GT/s, Width x16\n")
    assert facts.gpus[0].model == "GeForce RTX 4090"


def test_links_of_amd_without_a_product_are_xgmi():
    table = "==== Link Type between two GPUs ====\n  GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n"
    described = describe("topo", [facts_of(table)])
    assert "XGMI" in described.tree["link_kinds"]
    assert "nvlink" not in described.text


def test_a_cut_line_of_a_known_gpu_is_of_a_gpu():
    text = (
        "RocmBandwidthTest Version: 2.6.0\nDevice: 1,  AMD Radeon RX 9070 XT\n"
        "Device: 2,  AMD Radeon RX 9070 XT\n\nUnidirectional copy peak bandwidth GB/s\n"
        "D/D 1 2\n1 540.849 14.045\n2 14.046 540.064\n"
    )
    assert len(log_of(text).figures) == 4


def test_topology_of_a_cloud_names_classes_alone():
    gpu, nic = (
        f'class="{kind}" link_speed="16 GT/s" link_width="16"' for kind in ("0x030200", "0x020700")
    )
    body = "".join(
        f'<pci busid="000{n}:00:00.0" {gpu}/><pci busid="010{n}:00:00.0" {nic}/>' for n in range(4)
    )
    facts = facts_of(
        f'<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400">{body}'
        "</pci></cpu></system>"
    )
    assert (len(facts.gpus), facts.adapters, facts.gpus[0].max_speed) == (4, 4, 16.0)


def test_only_active_adapters_of_the_usual_speed_count():
    port = "CA 'mlx5_{}'\n\tPort 1:\n\t\tState: {}\n\t\tPhysical state: LinkUp\n\t\tRate: {}\n"
    ports = [(0, "Active", 400), (1, "Active", 400), (2, "Down", 400), (3, "Active", 100)]
    facts = facts_of("".join(port.format(*one) for one in ports))
    assert facts.adapters == 2
    assert facts.settings == {"adapter Gb/s": "400", "ports down": "mlx5_2"}


def test_a_generation_beyond_the_products_is_of_another_link():
    """B300 says Gen 6, the way to the adapter beside it, and copies by Gen 5 to the host."""
    told = log_of(
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "          0\n 0     55.30\n\nSUM host_to_device_memcpy_ce 55.30\n"
    ).figures
    gpu = ReportedGpu("NVIDIA B300 SXM6 AC", speed=64.0, width=16, max_speed=64.0, max_width=16)
    kinds = describe("smi", [Facts(gpus={0: gpu})], told).tree["link_kinds"]
    pcie = next(kind for name, kind in kinds.items() if name.startswith("pcie"))
    assert (pcie["speed"], pcie.get("max_speed")) == (32, None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2 x RX 7900 XTX", ("RX 7900 XTX", 2)), ("8 x MI355X", ("MI355X", 8)),
        ("4 x RTX 4070 Ti SUPER", ("RTX 4070 Ti SUPER", 4)), ("GB10", ("GB10", 1)),
        ("2 x Intel Data Center GPU Max 1550", ("Intel Data Center GPU Max 1550", 2)),
        ("8 x Gaudi 2", ("Gaudi 2", 8)), ("2 x RX 7900 ZZZ", None), ("RTX 3070 Max-Q", None),
    ],
)  # fmt: skip
def test_products(text, found):
    assert split_product(text) == found


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ("NVIDIA RTX PRO 4000 Blackwell", 672), ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", 432),
        ("AMD Radeon PRO W7800", 576), ("AMD Radeon PRO W7800 48GB", 864), ("Trainium 3", 4900),
        ("NVIDIA RTX 5000 Ada Generation Laptop GPU", None), ("AMD Radeon RX 7600M XT", None),
        ("NVIDIA GeForce RTX 3050 6GB Laptop GPU", None), ("AMD Radeon RX 7600S", None),
    ],
)  # fmt: skip
def test_memory_rate_of_a_variant(model, rate):
    product = product_of(model)
    assert (product.rate if product else None) == rate


def test_gzipped_text_is_read(tmp_path):
    data = (LOGS / "imb-pingpong.txt").read_bytes()
    (read,) = read_bytes("log.gz", gzip.compress(data))
    assert len(read.logs[0].figures) == 2
    (tmp_path / "log.gz").write_bytes(gzip.compress(data)[:-9])
    done = called("judge", "log.gz", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "damaged gzip" in done.stderr


def test_an_unknown_text_is_told_what_to_paste(tmp_path):
    (tmp_path / "log.txt").write_text("my script: to cpu 0.93 GB/s\n")
    done = called("judge", "log.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert "give all that nvbandwidth, nccl-tests" in done.stderr
