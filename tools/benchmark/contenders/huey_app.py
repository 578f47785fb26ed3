"""The huey application that producer and consumer import: FileHuey in the folder that HUEY_FOLDER names."""

from __future__ import annotations

import os

from huey import FileHuey  # type: ignore[import-not-found, import-untyped, unused-ignore]

from tools.benchmark import workload

huey = FileHuey(path=os.environ["HUEY_FOLDER"])
noop = huey.task()(workload.noop)
nap = huey.task()(workload.nap)
