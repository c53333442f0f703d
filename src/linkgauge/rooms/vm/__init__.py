"""Virtual machines: compares a libvirt domain with its guest or its host, and writes better XML."""
