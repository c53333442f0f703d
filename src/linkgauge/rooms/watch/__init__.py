"""Short probes of every link now and then, and a line when one gets worse."""
