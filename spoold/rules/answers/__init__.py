"""Questions that people ask.

case        the known facts about one task at one moment
reasons     why it is not running, in words
takers      the workers' side of that: which workers could take it
selection   the tasks selected by state, type and batch
"""
