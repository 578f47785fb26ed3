"""One file for each agent's command line: how to start it, how to read what it says.

    adapter        what an adapter is, and the normal form into which it reads
    known_agents   which agents are known, and the adapter of each
    generic        any command, with a line protocol of its own
    opencode       says when it waits for a quota only to a plugin, which we bring
    codex          all its settings on the command line
    qwen           says when it waits for a quota only in its debug log
    claude         reads no settings of the repository; its event stream, which qwen speaks too
    gemini         its exit code may be an HTTP status without its higher bits
    parsing        JSON in lines that have other things, too, and what is remembered of an attempt
    error_classes  which class an error has, and when a quota opens again

Law: no file, no process, no clock: an adapter turns an errand into a command, and lines into events. What it was
recorded from stands in its `recorded`.
"""
