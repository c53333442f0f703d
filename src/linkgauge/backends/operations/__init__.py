"""The operations, each a function `(on, copies, does) -> Group` of the backend `on`. An operation
uses only the primitives of `backends.offering`, which names its file, so it works with any backend.
`model.operations.operation` lists the properties of operations."""
