"""The pages: what each view shows, from the view and the client.

    overview    is it alive, how busy is it, what waits how long, what fails, why does it wait
    listing     the list of tasks: facets, search, order, pages
    one_task    one task: its attempts, why it is where it is, its log, its parents and children
    logs        the log of a task: its end, a search, what is new, all of it
    batches     all batches, and one: its graph, its timeline, its figures
    pool        nodes, and what gates count: limits, budgets, locks
    happenings  events, alerts, open questions

Law: a function of the site and an address, which writes nothing. Every count on a page is a link to what it counts,
where a list can say it.
"""
