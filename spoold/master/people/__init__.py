"""The requests of people and of running tasks, in control/.

    requests       cancel, retry, pause, resume, drain, halt, close, open, gc
    task_requests  holds, questions, answers and messages of single tasks; an ended task waits again
    reserving      what people and running tasks have reserved

Law: a request is carried out once, however long a share lists it afterwards.
"""
