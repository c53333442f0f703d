"""What the hardware should do. `expect` gives a cell's figure with its arithmetic: `routes` finds
what a transfer crosses, `link_rates` what PCIe and other links carry, `dram` host memory,
`exchange_rates` collectives.
"""
