"""The tree of a spool as a whole.

    audit             is the one-token law true of it? what a survey saw goes in, findings with their fixes come out
    context_versions  which entries of a batch's context count
    archiving         what moves to the archive

Law: pure; what was seen goes in, findings and fixes come out.
"""
