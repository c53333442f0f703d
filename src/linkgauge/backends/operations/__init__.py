"""The operations. Each is a function `(on, copies, does) -> Group` of the backend `on`, and uses
only the primitives of `backends.offering`, so that it works with any backend.
`model.operations.operation` lists the properties of operations."""
