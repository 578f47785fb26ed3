"""The waiting tasks, and which of them run next.

graph       which tasks wait for which, and cycles among them
resources   counted resources: how much a task uses, how much there is
backlog     the waiting tasks, and when the gates are asked again
queues      the order of runnable tasks
promoting   the tasks that go to ready/ next, and those that go back
matching    may this worker run the tasks in this lane?
ahead       how many tasks a worker may claim before a slot is free
"""
