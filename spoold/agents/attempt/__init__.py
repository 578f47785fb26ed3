"""One attempt of an agent's task, from the prompt to the result.

    one_attempt       its order: prompt, turns, questions, result
    follow_up         what follows accepted work: a merge, a branch, a command of the owner
    handler_contract  the files and variables of SPOOL_*, and the model of the attempt
    prompting         what the agent is told: the prompt, messages of people, the note of the attempt before
    own_workspace     the workspace of the attempt: a repository, where one is named
    cleanup           the program that looks after workspaces which others left, beside an attempt
    agent_telemetry   spans that an agent tells of its own attempt, which come into the result

Law: whatever happens, what the agent made is saved before the attempt ends, and the result says how it ended.
"""
