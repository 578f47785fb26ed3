"""What this worker serves, and how a task becomes a job within that.

    worker_config    what this worker serves and how, and what is masked: a file on the machine, never on the share
    handler          how the tasks of one type are run, and what they may say about it
    secrets          where the secrets are that a handler names, and their values
    job_preparation  task + handler → program, environment, folder, limits
    handler_notes    what programs of handlers left here for people to see to
    availability     which handlers' programs and modules are on this machine, and whether it can start tasks at all

Law: the worker's configuration decides what runs; a task only asks.
"""
