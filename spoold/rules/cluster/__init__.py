"""The nodes of a spool, as each of them sees the others.

    liveness        which nodes are dead, by counters and the observer's own clock; what kept one from beating
    election        who leads: what to do with the token that was seen
    pool_clock      what time it is where machines disagree, and one moment on a leader's two clocks
    node_status     heartbeats as status shows them
    recent_minutes  what ended in each minute of the last hour, under any leaders
    throughput      how fast tasks end, when the rest will have ended, what went wrong lately

Law: pure; beats are compared, never the clocks of two machines.
"""
