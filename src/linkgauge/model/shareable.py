"""The kinds of texts in documents, and how much of each kind a document for others may contain."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

Words = Literal[
    "none", "label", "known", "versions", "options", "stated", "digest", "gap", "facts", "calls",
    "kernel",
]  # fmt: skip
"""What is kept of a text. `none`: nothing. `label`: linkgauge's own labels. `known`: words of
linkgauge, hardware and drivers, but no IP addresses. `versions`: the same words, and numbers like
1.2.3.4. `options`: arguments of linkgauge's command line. `stated`: keys of hardware.yml. `digest`:
a checksum. `gap`: which fields could not be read. `facts`: known words before a bracket. `calls`:
calls of drivers and their errors. `kernel`: options of the kernel."""


class TextKind(NamedTuple):
    """A kind of text. `words` says what may be shared of a text. `otherwise` replaces a text that
    may not be shared; its `{0}` becomes a number, the same one for equal texts."""

    otherwise: str
    words: Words = "none"


def _kind(otherwise: str, words: Words = "none") -> Meta:
    return Meta(extra={"text": TextKind(otherwise, words)})


FREE = TextKind("(removed)")
TRANSFER = TextKind("memory:{0} -> memory:{0} by ce", "known")
GAP = TextKind("(removed)", "gap")
KERNEL = TextKind("(removed)", "kernel")
TOOL_FILE = TextKind("linkgauge/tools/tool-{0}.txt", "known")

FreeText = Annotated[str, Meta(extra={"text": FREE})]
Reason = Annotated[str, _kind("(removed)", "calls")]
"""The reason for an outcome. Only calls and errors are kept of it."""

Facts = Annotated[str, _kind("(removed)", "facts")]
"""What linkgauge or a library says of a device or a way, in a few words."""

# Names, and texts that contain names.
HostName = Annotated[str, _kind("host-{0}")]
Label = Annotated[str, _kind("label-{0}", "label")]
ProcessName = Annotated[str, _kind("process-{0}")]
Identity = Annotated[str, _kind("id-{0}")]
IpAddress = Annotated[str, _kind("address-{0}")]
FileName = Annotated[str, _kind("file-{0}")]
ServedModel = Annotated[str, _kind("model-{0}")]

# Texts of closed form.
Word = Annotated[str, _kind("word-{0}", "known")]
Version = Annotated[str, _kind("version-{0}", "versions")]
Product = Annotated[str, _kind("product-{0}", "known")]
PlaceName = Annotated[str, _kind("place-{0}", "known")]
MemoryName = Annotated[str, _kind("memory:{0}", "known")]
PciAddress = Annotated[str, _kind("ffff:{0:02x}:00.0", "known")]
InterfaceName = Annotated[str, _kind("interface-{0}", "known")]
Variable = Annotated[str, _kind("variable-{0}", "known")]
ToolCommand = Annotated[str, _kind("tool-{0}", "known")]
ToolFile = Annotated[str, Meta(extra={"text": TOOL_FILE})]
KernelOptions = Annotated[str, Meta(extra={"text": KERNEL})]
OwnName = Annotated[str, _kind("name-{0}", "known")]
MachineName = Annotated[str, _kind("machine-{0}", "known")]
Title = Annotated[str, _kind("title-{0}", "known")]
Argument = Annotated[str, _kind("typed-{0}", "options")]
Time = Annotated[str, _kind("1970-01-01T00:00:00Z", "known")]
Digest = Annotated[str, _kind("digest-{0}", "digest")]
StatedKey = Annotated[str, _kind("key-{0}", "stated")]
StatedValue = Annotated[str, _kind("stated-{0}", "known")]
