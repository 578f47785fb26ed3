"""Traces: what a task waited for and ran for, as spans of OpenTelemetry.

    span         a span: an id, a begin, an end, and what it says; spans as lines of OTLP JSON
    conventions  every name that OpenTelemetry's conventions give, and ours, with their version
    task_spans   a task becomes spans, and each attempt of it, by its record and the journals
    agent_spans  spans that an agent told of its own attempt, as its result holds them

Law: as for all pictures, and spans tell only of what has ended: a span that changes later cannot be taken back. Equal
tasks give equal spans, byte for byte.
"""
