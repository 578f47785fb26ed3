"""The pages of `spool top`: what each gathers, and how it is laid out.

    page      what all pages have in common
    overview  the whole pool on one screen
    tasks     the list of tasks, in pages
    running   what runs now
    lists     batches, nodes, queue by age, reasons, failures
    notices   questions, events, alerts
    gates     limits, budgets, locks
    task      one task
    batch     one batch
    dag       who waits for whom, as indented text
    log       what an attempt wrote
    history   what happened to a task

Law: a page is laid out from values alone, in a thread. It knows no widget.
"""
