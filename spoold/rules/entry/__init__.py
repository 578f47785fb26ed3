"""How a drop comes in.

    admission   a drop as a task, as all tasks of a batch, as a rejection, or not yet
    references  names that must be in the settings

Law: pure; a drop is judged by its bytes and its name alone.
"""
