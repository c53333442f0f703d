"""Which parts of a machine make cells slow or unsteady."""
