"""A planner's answer becomes tasks: an agent plans, its answer is judged as a drop would be, and a person decides.

    prompting    the task of the planner, and what it is told
    answering    its words as lines, of which some are tasks
    proposing    a whole answer: judged, kept, and submitted as it was shown
    drawing      the tasks as a tree, each once, with what it does

Law: nothing of a plan is submitted before all of it was judged. What a person was shown is what is submitted.
"""
