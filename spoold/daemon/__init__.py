"""The daemons: process loops around `step()`.

Law: nothing here decides anything about a task; a daemon starts, wakes, reports to its service manager
and stops.
May touch everything below: `worker`, `master`, `client` and what they stand on.
"""
