"""The version of spoold, in every heartbeat. The format of a spool has a version of its own, see `layout`."""

__version__ = "0.2.0"
