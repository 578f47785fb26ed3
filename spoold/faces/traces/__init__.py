"""`spool trace export --endpoint`: spans for a collector, over OTLP/HTTP.

    sending      spans as those of OpenTelemetry's SDK, and its exporter, which has its own variables

Law: nothing is sent anywhere but to the address that the caller names. No other room imports it but the verb, so that
no other command loads the SDK, which the extra `otel` brings.
"""
