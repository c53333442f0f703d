"""The operations. Each is a function `(on, copies, does) -> Group`, where `on` is a backend. An
operation uses only the primitives of `backends.offering`, so that it works with every backend.
`model.operations.operation` lists the properties of operations."""
