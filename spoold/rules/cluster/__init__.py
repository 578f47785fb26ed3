"""The nodes of a spool, as each of them sees the others.

    liveness    which nodes are dead, by counters and the observer's own clock
    succession  who leads: what to do with the token that was seen
    twins       machines of one identity, named to people
    clocks      what time it is where machines disagree
    power       what a battery lets a worker do
    drain       which workers a drain is meant for
    nodes       heartbeats as status shows them
    tempo       how fast tasks end, when the rest will have ended, what went wrong lately

Law: pure; beats are compared, never the clocks of two machines.
"""
