"""Fast checks without the models: for the files that a short command reads, and the task that it submits.

    readers     how one field is read
    basics      the settings and the marker
    table       all of the settings
    draft       a task that is about to be submitted
    picture     heartbeats and the leader's snapshots

Law: a yes is the model's own answer, with the same values; a test holds each shape to its model. All else is "not
sure", never an error: then the caller asks the model, and people read the model's words. Building the models takes
longer than a whole `spool submit`, and most files do not need them.
"""
