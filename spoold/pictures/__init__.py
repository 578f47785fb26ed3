"""Pictures of tasks: a scene goes in, text comes out (SVG, HTML, mermaid, dot, JSON of Perfetto and OTLP).

    picture_data      what a picture shows: tasks, what each waits for, all attempts; and a report's numbers
    wording           text of other people made harmless and short enough: no escapes, no marks for right-to-left text
    task_description  what a task runs and what decides that, whole, in lines that no other line can imitate
    log_colours       logs with the colours that programs gave them, and nothing else that is meant for terminals
    palette           one colour and one glyph for each state
    svg               writes elements of SVG and HTML, and escapes everything in them; the styles of all pictures
    boxes             the boxes of a graph: a task each, or a group that says "N tasks"; what boxes and bars say
    graph_svg         the graph of a batch as SVG, and its layout: ranks, the order within each, coordinates
    mermaid           the same for Mermaid
    dot               the same for Graphviz
    timeline_layout   attempts as bars in lanes, and time as a position, with long idle gaps folded
    timeline_svg      the attempts over time, as SVG
    perfetto          the same as trace events, for Perfetto
    report_html       the report of a batch as one HTML file, with its tables
    traces/           a task as spans of OpenTelemetry, as lines of OTLP JSON

Law: pure, and imports only protocol; no file, no clock. Equal scenes give equal text. Whatever a task says (name, id,
log) is text in a picture and never markup, and no picture asks any server for anything.
"""
