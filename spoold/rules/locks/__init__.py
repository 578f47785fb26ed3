"""Locks: which tasks may not run together, and who goes first.

    demand   what one task locks, to write and to read, and whether two demands conflict
    turns    the tasks that wait for nothing but locks, in line
    book     who holds what, and who keeps a task back
    seen     the book as a snapshot shows it
    touched  the files that attempts say they changed

Law: pure. Where it cannot be decided whether two patterns overlap, they do.
"""
