"""The plot of a run, as an SVG that is read on light and on dark paper: jobs a second on a logarithmic scale.

A line for each system, its name at the end of the line in its colour, so that there is no legend to look up. The colours are of middle
brightness; everything else follows the reader's colour scheme. The same numbers give the same bytes.
"""

import math
from html import escape

import figures

WIDTH, HEIGHT = 840, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 310, 46, 44
LABEL_HEIGHT = 17
COLOURS = {
    "crosspoint": "#e0563b",
    "crosspoint-agent": "#d98a1f",
    "crosspoint-run": "#c2559d",
    "restate": "#3d7fd9",
    "dbos": "#8a63d2",
    "celery": "#2f9e63",
    "nats": "#7d8590",
}
# The plot brings its own paper: a page that is dark without telling its pictures still shows it readable.
STYLE = """
  .paper { fill: #ffffff }
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .ours { font-weight: bold }
  .quiet { fill: #6e7781 }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .lead { stroke-width: 1 }
  .append { stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 }
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .grid { stroke: #3d444d }
  }
"""


def drawn(record):
    lines = rates(record)
    top, bottom = bounds([rate for _, _, line in lines for rate in line])
    scale = lambda rate: y_of(rate, bottom, top)
    parts = [grid(bottom, top, scale)]
    parts += [line(name, rates, scale) for name, _, rates in lines]
    parts += labels(lines, scale)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{described(lines)}">'
    title = f'<text x="{LEFT - 48}" y="22">Jobs a second, each durable before it is answered (logarithmic)</text>'
    paper = f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, title, *parts, "</svg>"]) + "\n"


def rates(record):
    """Name, title and the three rates of each system that was run."""
    run = [(name, entry) for name, entry in record["systems"].items() if not figures.absent(entry)]
    return [(name, entry["title"], [figures.cell(entry, count).rate for count in figures.CONNECTIONS]) for name, entry in run]


def described(lines):
    told = [f"{title}: {', '.join(f'{rate:.0f}' for rate in line)}" for _, title, line in lines]
    return escape(f"Jobs a second at {', '.join(map(str, figures.CONNECTIONS))} clients. {'; '.join(told)}", quote=True)


def bounds(rates):
    """Whole powers of ten around all rates."""
    top = 10 ** math.ceil(math.log10(max(rates, default=10)))
    bottom = 10 ** math.floor(math.log10(max(1, min(rates, default=1))))
    return max(top, bottom * 10), bottom


def x_of(place):
    return round(LEFT + 24 + place * (WIDTH - LEFT - RIGHT - 48) / (len(figures.CONNECTIONS) - 1), 1)


def y_of(rate, bottom, top):
    share = math.log10(max(rate, bottom) / bottom) / math.log10(top / bottom)
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def grid(bottom, top, scale):
    parts = []
    power = bottom
    while power <= top:
        y = scale(power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{power:,}</text>')
        power *= 10
    for place, count in enumerate(figures.CONNECTIONS):
        text = f"{count} client{'s' * (count > 1)}"
        parts.append(f'<text class="quiet" x="{x_of(place)}" y="{HEIGHT - BOTTOM + 24}" text-anchor="middle">{text}</text>')
    return "\n".join(parts)


def line(name, rates, scale):
    points = [(x_of(place), scale(rate)) for place, rate in enumerate(rates)]
    path = " ".join(f"{x},{y}" for x, y in points)
    colour = COLOURS[name]
    # An append is no job; its line is broken.
    kind = "line append" if name == "nats" else "line"
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in points)
    return f'<polyline class="{kind}" stroke="{colour}" points="{path}"/>{dots}'


def labels(lines, scale):
    """The names, each as near to the end of its line as the others allow."""
    wanted = sorted((scale(line[-1]), name, title, line[-1]) for name, title, line in lines)
    parts = []
    for y, (end, name, title, rate) in zip(apart([y for y, *_ in wanted]), wanted):
        x = WIDTH - RIGHT + 10
        parts.append(f'<path class="lead" stroke="{COLOURS[name]}" d="M{x_of(2) + 5} {end} L{x - 3} {y}"/>')
        kind = ' class="ours"' if name.startswith("crosspoint") else ""
        shown = f"{rate:,.0f} {title.replace('agent in another process', 'agent elsewhere')}"
        parts.append(f'<text x="{x}" y="{y + 4}"{kind}>{escape(shown)}</text>')
    return parts


def apart(places):
    """Moves places (from the top down) as little as needed so that none touches the one before, and none leaves the plot."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + LABEL_HEIGHT) if moved else place)
    floor = HEIGHT - BOTTOM
    for index in range(len(moved) - 1, -1, -1):
        moved[index] = round(min(moved[index], floor), 1)
        floor = moved[index] - LABEL_HEIGHT
    return moved
