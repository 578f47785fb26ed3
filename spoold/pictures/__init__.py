"""Pictures of tasks: a scene goes in, text comes out (SVG, HTML, mermaid, dot, JSON of Perfetto and OTLP).

    scene       what a picture shows: tasks, what each waits for, and all its attempts
    figures     what a report says in numbers: by state, by cause, by model, the slowest
    wording     text of other people made harmless and short enough: no escapes, no marks for right-to-left text
    work        what a task runs and what decides that, whole, in lines that no other line can imitate
    ansi        logs with the colours that programs gave them, and nothing else that programs write for terminals
    captions    what boxes and bars say, in words
    palette     one colour and one glyph for each state
    svg         writes elements of SVG and HTML, and escapes everything in them
    cells       the boxes of a graph: a task each, or a group that says "N tasks" where there are too many
    layers      the layout of a graph: ranks, the order within each, coordinates
    lanes       attempts as bars: a lane for each slot of a worker
    axis        time as a position, with long idle gaps folded
    legend      the sign of a state
    sheet       the styles that all pictures share, for light and dark screens
    graph_svg   the graph of a batch as SVG
    mermaid     the same for Mermaid
    dot         the same for Graphviz
    timeline_svg  the attempts over time, as SVG
    perfetto    the same as trace events, for Perfetto
    report_tables  the tables of a report
    report_html the report of a batch as one HTML file
    traces/     a task as spans of OpenTelemetry, as lines of OTLP JSON

Law: pure, and imports only protocol; no file, no clock. Equal scenes give equal text. Whatever a task says (name, id,
log) is text in a picture and never markup, and no picture asks any server for anything.
"""
