"""Traces: what a task waited for and ran for, as spans of OpenTelemetry.

    span         a span: an id, a begin, an end, and what it says
    conventions  every name that OpenTelemetry's conventions give, and ours, with their version
    laps         one attempt from its claim to its commit, by its record and the journals
    making       a task becomes spans
    told         spans that an agent told of its own attempt, as its result holds them
    otlp         spans as lines of OTLP JSON

Law: as for all pictures, and spans tell only of what has ended: a span that changes later cannot be taken back. Equal
tasks give equal spans, byte for byte.
"""
