"""tools/hostile --agents: agents that leave what no agent should, and the laws that hold all the same.

    place history tree inner settings torn    the building blocks: what an agent leaves, by subject
    agent leaving                             a program that one seed decides, and what it says that it has left
    remotes canaries killing                  repositories, what nobody may touch, and who kills savers
    profiles arena                            the pool in which seeds are played
    judging                                   the laws, as functions of what was seen

Law: the blocks and the agent use the standard library alone, and nothing of spoold.
"""
