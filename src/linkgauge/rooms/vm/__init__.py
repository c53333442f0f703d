"""Virtual machines: a libvirt domain beside its guest or its host, and the XML that suits it."""
