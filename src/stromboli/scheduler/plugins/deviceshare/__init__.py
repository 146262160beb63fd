"""deviceshare: pods on individual cards, or on slices of cards (spec 06 sections 29 to 33)."""

from stromboli.scheduler.plugins.deviceshare.plugin import DeviceShare

__all__ = ["DeviceShare"]
