"""The version of spoold, which every heartbeat carries. The format of a spool has its own, see `layout`."""

__version__ = "0.2.0"
