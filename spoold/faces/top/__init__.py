"""`spool top`: the pool on a terminal, live, with keys to go deeper and to act.

    textual_app    the application: the stack of pages, keys, commands; opened on a terminal, or drawn into an SVG
    views          the views by their names; the table of keys; the help
    source         what pages ask, in threads
    actions        the actions, as proposals that say what will happen
    widgets        a sheet of rows, a bar, the box that asks, the line in which a person types
    text_layout    lines of words and styles, tables in a given number of columns, ages and amounts
    colours        styles as colours, dark, light or none

The pages, what each gathers and how it is laid out:

    page           what all pages have in common; what a person types after / as a question to the view
    overview_page  the whole pool on one screen
    tasks_page     the list of tasks, of which only the pages that are seen are loaded
    list_pages     batches, nodes, queue by age, reasons, failures, what runs, questions, events, alerts
    gates_page     limits, budgets, locks
    task_page      one task: who waits for whom, what happened to it
    batch_page     one batch
    log_page       what an attempt wrote

The picture comes from `spoold.client.view`. Modules of values (`text_layout` and the pages) know no textual but by
`page`; `widgets`, `colours` and `textual_app` do. A page is laid out from values alone, in a thread.

Law: text of other people passes `text_layout.word`, and reaches the terminal as text and nothing else. Viewing writes
nothing; an action is a request that the leader carries out.
"""
