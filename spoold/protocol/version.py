"""The version of spoold itself, in every heartbeat.

Law: no node decides anything by it. The format of a spool has a version of its own, `layout.FORMAT_VERSION`.
"""

__version__ = "0.2.0"
