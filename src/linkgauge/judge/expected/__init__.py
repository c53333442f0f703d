"""Computes what the hardware should reach. `expect` gives a cell's figure with its arithmetic.
`routes` finds the path of a transfer. `link_rates` computes what PCIe and other links carry, `dram`
the rate of host memory, and `exchange_rates` the rates of collectives."""
