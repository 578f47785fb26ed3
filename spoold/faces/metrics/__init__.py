"""`spool metrics`: a spool as Prometheus reads it, as text, as a file for node_exporter, or over HTTP.

    exposition        every name that is exposed: its type, what it means, its labels; samples as text
    gauges            the leader's snapshot, the heartbeats and the share, as samples
    attempt_counters  the journals since a server began, as counters and histograms
    endpoint          the page over HTTP: one look for however many readers, one every few seconds at most

The text is written by `exposition`: the format has three kinds of lines. In the tests `promtool check metrics` and a
real Prometheus read it. prometheus_client was tried, with a collector and its WSGI application: spoold had 18 lines
more. Its server has no guard, no time limits and no bound on connections, so ours would stay. A run with `-o`
from a timer took 0.1 s more of CPU time, and needed one package more.

Law: looks and never writes to the share. No label names a task, a batch, a user or a path, and every label has a
bounded number of values. Times are time stamps, never ages: an age would go on being young where nobody looks. The
room asks `spoold.client` and nothing below it, and no other room imports it but the verb.
"""
