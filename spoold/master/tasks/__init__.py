"""What becomes of tasks once they are admitted.

    scheduler  returned/ → waiting/ → ready/, and back when a gate closes
    reaping    the claims of dead workers: another attempt, or the crash limit
    archiving  completed/ and failed/ → archive/, and what is deleted for good

Law: every move is one rename, and the listings say whether it was made.
"""
