"""The celery application that producer and worker import: kombu's filesystem transport under CELERY_FOLDER."""

from __future__ import annotations

import os

from celery import Celery  # type: ignore[import-not-found, import-untyped, unused-ignore]

from tools.benchmark import workload

FOLDER = os.environ["CELERY_FOLDER"]
for part in ("messages", "control", "results", "processed"):
    os.makedirs(f"{FOLDER}/{part}", exist_ok=True)

app = Celery("benchmark", broker="filesystem://", backend=f"file://{FOLDER}/results")
app.conf.update(
    broker_transport_options={
        "data_folder_in": f"{FOLDER}/messages",
        "data_folder_out": f"{FOLDER}/messages",
        "control_folder": f"{FOLDER}/control",
        "processed_folder": f"{FOLDER}/processed",
        "store_processed": True,
        "polling_interval": 0.001,
    },
    task_acks_late=os.environ.get("CELERY_LATE") == "1",
    task_reject_on_worker_lost=os.environ.get("CELERY_LATE") == "1",
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)
noop = app.task(name="noop")(workload.noop)
nap = app.task(name="nap")(workload.nap)
