"""`spool web`: a spool in a browser, on this machine alone.

    serving     sockets, uvicorn and its bounds, the URL that opens it
    connections how many there are, how long each may take, and what their trouble says
    guard       who may speak to it: host, method, origin and cookie of a request, before anything else reads it
    entrance    the token that works once, and the cookies that it was exchanged for
    headers     what every answer says to a browser
    assets      the files that a page loads: styles, scripts
    site        the routes, and what all pages know
    later       what takes long to read: a page is shown without it meanwhile
    copies      finished pages, made once for all who ask
    updates     the stream that says that something changed
    address     what a page shows, as the part of its URL behind the `?`
    pages       one module for each view
    acting      the forms that cancel, retry, answer: only with --allow-actions
    seen        what the page of an action shows of tasks, and a digest of it: only what was shown is done

A page is HTML from the server, and works without scripts. With them, the page hears over one stream that something
changed, asks for its own URL again, once a second at most, and replaces what differs; so scroll, focus and what was
typed stay. The server makes each page once for each version of the view, for however many ask.

Law: looks, and posts requests only where actions are allowed. No address outside this server is in a page, no script
and no style is inline, and what a task or a node says is text. The room imports the client, the protocol and the
pictures, and no other room imports it but the verb.
"""
