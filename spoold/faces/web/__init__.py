"""`spool web`: a spool in a browser, on this machine alone.

    http_server   sockets, uvicorn and its bounds, the connections, the URL that opens it
    security      who may speak to it: login, cookies, host, method, origin; what every answer says to a browser
    site          the routes, and what all pages know
    page_address  what a page shows, as the part of its URL behind the `?`
    page_cache    finished pages, made once for all who ask; what takes long to read, and comes later
    updates       the stream that says that something changed
    assets        the files that a page loads: styles, scripts
    pool_pages    the overview; nodes, limits, budgets, locks; events, alerts, open questions
    task_pages    the list of tasks; one task; its log
    batch_pages   all batches, and one: its graph, its timeline, its figures
    action_pages  the forms that cancel, retry, answer, only with --allow-actions: only what was shown is done

A page is HTML from the server, and works without scripts. With them, the page hears over one stream that something
changed, asks for its own URL again, once a second at most, and replaces what differs; so scroll, focus and what was
typed stay. The server makes each page once for each version of the view, for however many ask.

Law: looks, and posts requests only where actions are allowed. No address outside this server is in a page, no script
and no style is inline, and what a task or a node says is text. The room imports the client, the protocol and the
pictures, and no other room imports it but the verb.
"""
