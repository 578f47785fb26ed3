"""What surely fits a model, found without the model: the files that a short command reads, and the task it submits.

    readers     how one field is read
    basics      the settings and the marker
    table       all of the settings
    draft       a task that is about to be submitted
    picture     heartbeats and the leader's picture of the cluster

Law: a yes is the model's own answer, with the same values; a test holds each shape to its model. All else is "not
sure", never an error: then the model is asked, and its words are what people read. To build the models takes longer
than a whole `spool submit`, and most files need none of their care.
"""
