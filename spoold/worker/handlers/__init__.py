"""A task becomes a job, within what this worker permits.

    handler     how the tasks of one type are run, and what they may say about it
    permits     what a task may say about how it is run: directory, variables, standard input
    secrets     where the secrets are that a handler names, and their values
    preparing   task + handler → program, environment, folder, limits

Law: the worker's configuration decides what runs; a task only asks.
"""
