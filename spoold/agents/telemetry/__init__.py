"""What an agent tells of its own attempt in spans of OpenTelemetry, which come into the result.

    around       both, around an attempt whose profile says `trace = true`

Law: nothing here ends, delays or fails an attempt. What is too much, too long or too slow is dropped and counted.
"""
