"""Every name in a span: those of OpenTelemetry's conventions, and ours.

Those for messaging, CI/CD and generative AI may still change. So they stand here alone, with their version.

Law: no other module spells such a name.
"""

from __future__ import annotations

VERSION = "1.44.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"
SYSTEM = SCOPE = "spoold"

SERVICE_NAME, SERVICE_NAMESPACE, SERVICE_INSTANCE = "service.name", "service.namespace", "service.instance.id"
ERROR_TYPE = "error.type"
EXIT_CODE = "process.exit.code"

# Messaging: a submission sends, an attempt processes.
MESSAGING_SYSTEM = "messaging.system"
MESSAGING_OPERATION, MESSAGING_OPERATION_TYPE = "messaging.operation.name", "messaging.operation.type"
MESSAGING_DESTINATION, MESSAGING_MESSAGE = "messaging.destination.name", "messaging.message.id"
SEND, PROCESS = "send", "process"

# CI/CD: a batch is a pipeline, a task one of its tasks, an attempt a run of it.
PIPELINE, PIPELINE_TASK, TASK_RUN = "cicd.pipeline.name", "cicd.pipeline.task.name", "cicd.pipeline.task.run.id"
TASK_RESULT, WORKER = "cicd.pipeline.task.run.result", "cicd.worker.id"
# Our status → their result. Another one is left out.
RESULTS = {
    "success": "success",
    "failure": "failure",
    "timeout": "timeout",
    "cancelled": "cancellation",
    "worker_died": "error",
    "skipped": "skip",
}
FAILED = frozenset({"failure", "timeout", "worker_died"})

# Generative AI: what an attempt of an agent used. Their count of what went in holds what was cached.
MODEL = "gen_ai.request.model"
TOKENS_IN, TOKENS_OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TOKENS_CACHED = "gen_ai.usage.cache_read.input_tokens"

# Ours.
TASK_NAME, PARENT, ATTEMPT, STATUS = "spoold.task.name", "spoold.task.parent", "spoold.attempt", "spoold.status"
TOKENS, COST, CPU = "spoold.tokens_used", "spoold.cost_usd", "spoold.cpu_s"
MEMORY, FROZEN, ESTIMATED = "spoold.max_rss_mb", "spoold.frozen_s", "spoold.estimated"
WRITER, WHY, DROPPED = "spoold.writer", "spoold.link", "spoold.agent.spans_dropped"
