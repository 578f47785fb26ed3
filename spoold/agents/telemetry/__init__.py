"""What an agent tells of its own attempt in spans of OpenTelemetry, which come into the result.

    reading      a post in OTLP JSON becomes plain spans, few and short
    receiving    the server on loopback that takes posts, for as long as the agent works
    around       both, around an attempt whose profile says `trace = true`

Law: nothing here ends, delays or fails an attempt. What is too much, too long or too slow is dropped and counted.
"""
