"""What people and other programs meet: each face is a package that uses the library, and nothing uses it.

cli/        the `spool` command
"""
