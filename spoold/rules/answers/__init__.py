"""Questions that people ask.

    task_facts       what is known of one task at one moment
    why_not_running  why it is not running, in words
    why_waiting      the part of that for a task that waits or is ready: the gates, and which workers could take it
    why_failed       why it failed, and what would help
    task_history     everything that happened to one task, in words, and what its agent was told
    selection        which tasks are meant by state, type and batch

Law: pure; an answer comes from the rules that decide, never from a copy of them.
"""
