"""How a drop comes in.

    admission   a drop as a task, a rejection, or not yet
    batch       a .jsonl drop as tasks
    naming      names that must be in the settings

Law: pure; a drop is judged by its bytes and its name alone.
"""
