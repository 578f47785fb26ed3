"""Questions that people ask.

    case        what is known of one task at one moment
    reasons     why it is not running, in words
    failed      why it failed, and what would help
    takers      the workers' side of that: which of them could take it
    story       everything that happened to one task, in words
    messages    what its agent was told, and which attempts have it
    selection   which tasks are meant by state, type and batch

Law: pure; an answer comes from the rules that decide, never from a copy of them.
"""
