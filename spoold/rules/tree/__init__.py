"""The tree of a spool as a whole.

sighting    the content of one survey
audit       is the one-token law true of it?
finding     a fault, and its fix
retention   the files that move to the archive
"""
