"""What the tasks of a batch share, for an agent that does not see the spool.

    copied      the entries that count, as plain files in a folder of this machine

Law: a copy is made before the agent starts, and what the agent does to it reaches nobody.
"""
