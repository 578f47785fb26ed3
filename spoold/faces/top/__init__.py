"""`spool top`: the pool on a terminal, live, with keys to go deeper and to act.

    paged     the stack of pages, and when to look again
    acts      the actions, as proposals that say what will happen
    asking    the box that asks, and the line in which a person types
    keys      the table of keys
    views     the views by their names; the help
    pages     what is shown, a page for each view
    pager     a long list of which only the pages that are seen are loaded
    filters   what a person types after / as a question to the view
    source    what pages ask
    aside     calls that may block, in threads
    sheet     the widgets: lines that are drawn where they changed
    lines     lines of words and styles; what stands behind a row
    fit       tables in a given number of columns
    figures   ages, bars and amounts in few columns
    colours   styles as colours, dark, light or none
    opening   opens it on a terminal, or draws a view into an SVG

The picture comes from `spoold.client.view`. Rooms of values (lines, fit, figures, filters, bars, pages) know no
textual; `sheet`, `asking`, `paged` and `app` do.

Law: text of other people passes `lines.word`, and reaches the terminal as text and nothing else. Viewing writes
nothing; an action is a request that the leader carries out.
"""
