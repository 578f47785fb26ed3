"""What people and other programs meet: each face is a package that uses the library, and nothing uses it.

    cli/        the `spool` command
    top/        the pool on a terminal, live
    web/        the pool in a browser
    mcp/        a server for coding agents, over the Model Context Protocol
    metrics/    figures for Prometheus: as text, as a file, over HTTP
    trace_export    spans for a collector of OpenTelemetry

Law: a face asks `spoold.client`, has `spoold.pictures` draw, and asks nothing else below them, except for the verbs
that run or repair a spool.
"""
