"""Interfaces for people and other programs: each face is a package that uses the library, and nothing uses it.

cli/        the `spool` command
"""
