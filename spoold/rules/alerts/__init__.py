"""Alerts: what people are told of, once for each time that it begins.

    reading   one look at one thing that people may be told of
    measures  figures of the spool → readings, by the settings
    board     the alerts that stand: which rise now, and which fall
    recent    how many of the attempts that ended last have failed

Law: pure. An alert rises once and stands until its figure is clearly within bounds again. What is unknown changes
nothing.
"""
