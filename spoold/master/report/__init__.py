"""The leader's report to people.

    status_report  heartbeat and status snapshot
    forecast       the tasks that are left, by type and lane, and the workers that can run them

Law: it is for people, and no node decides by it.
"""
