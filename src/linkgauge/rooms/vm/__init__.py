"""Compares a libvirt domain (virtual machine) with its guest or host, and writes better XML."""
