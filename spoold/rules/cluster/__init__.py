"""The nodes of a spool, as each of them sees the others.

liveness    which nodes are dead, by counters and the observer's own clock
succession  who leads: the action on the token that was seen
clocks      the right time when machines disagree
power       the effect of a battery on a worker
drain       the workers that a drain means
nodes       heartbeats as status shows them
tempo       how fast tasks end, when the rest will have ended, and recent failures
"""
