"""What joins a card and the CPU where host copies are not what the data sheet's PCIe carries."""

from command_kit import called

SAMPLE = """ Device 0: {}
 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)        Bandwidth(GB/s)
   32000000                     {}
"""


def answer(folder, text):
    (folder / "log.txt").write_text(text)
    done = called("judge", folder / "log.txt")
    return done.returncode, " ".join(done.stdout.split())


def test_more_than_pcie_carries_is_another_link(tmp_path):
    code, said = answer(tmp_path, SAMPLE.format("Tesla V100-SXM2-16GB", 67.1))
    assert (code, "another link than PCIe joins the CPU and Tesla V100" in said) == (0, True)
    assert "high" not in said
    assert "verdict: not judged" in said
    code, said = answer(tmp_path, SAMPLE.format("Tesla V100-SXM2-16GB", 12.8))
    assert (code, "another link" in said, "verdict: ok" in said) == (0, False, True)


ROCM = """          RocmBandwidthTest Version: 2.3.11
          Device: 0,  AMD Ryzen 7 2700X Eight-Core Processor
          Device: 1,  Vega 20 [Radeon VII],  29:0.0
          Device: 2,  Vega 20 [Radeon VII],  2d:0.0

          Unidirectional copy peak bandwidth GB/s

          D/D       0           1           2

          0         N/A         {0}    {1}

          1         {0}    589.090226  3.574881

          2         {1}    3.578511    587.440106
"""


def test_each_width_that_cards_of_unknown_slots_fit_is_named(tmp_path):
    _, said = answer(tmp_path, ROCM.format("3.578846", "7.157202"))
    assert "3.57 GB/s is about what PCIe 16 GT/s x2 or 8 GT/s x4" in said
    assert "7.16 GB/s is about what PCIe 16 GT/s x4 or 8 GT/s x8" in said
    assert "what the hardware should reach" not in said
