"""The tree of a spool as a whole.

    sighting    what a survey of it saw
    audit       is the one-token law true of it?
    finding     what is wrong, and the fix
    versions    which entries of a batch's context count
    retention   what moves to the archive

Law: pure; what was seen goes in, findings and fixes come out.
"""
