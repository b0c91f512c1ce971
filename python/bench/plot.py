"""Draws the tables that ``torch_backends.py`` prints: times by size, a panel for each number of ranks.

Usage: plot.py CALL < TABLES.md > PICTURE.svg
"""

from __future__ import annotations

import math
import re
import sys

WIDTH, HEIGHT = 250, 240
LEFT, TOP, GAP = 58, 46, 34
COLORS = {"gloo": "#b2182b", "roundelay": "#2166ac"}
NAMES = {"gloo": "Gloo", "roundelay": "Roundelay"}

Row = tuple[int, dict[str, float]]


def tables(text: str, call: str) -> dict[int, list[Row]]:
    """Sizes with the times of both backends in microseconds, by the number of ranks."""
    found: dict[int, list[Row]] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        ranks = int(part.split()[0])
        row = rf"^\| {call} \| (\d+) \| ([\d.]+) \| ([\d.]+) \|"
        found[ranks] = [
            (int(size), {"gloo": float(theirs), "roundelay": float(ours)})
            for size, theirs, ours in re.findall(row, part, flags=re.MULTILINE)
        ]
    if not any(found.values()):
        raise SystemExit(f"no row of the tables is for {call}")
    return found


def size_name(size: int) -> str:
    """1024 is 1K."""
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K"


def time_name(us: float) -> str:
    """10 is 10 us, and 1000 is 1 ms."""
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} us"


def picture(call: str, found: dict[int, list[Row]]) -> str:
    """The picture as a text."""
    every = [(size, time) for rows in found.values() for size, both in rows for time in both.values()]
    sizes = sorted({size for size, _ in every})
    low = math.floor(math.log10(min(time for _, time in every)))
    high = math.ceil(math.log10(max(time for _, time in every)))
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def across(size: int) -> float:
        return (math.log2(size) - first) / (last - first) * WIDTH

    def down(time: float) -> float:
        return (high - math.log10(time)) / (high - low) * HEIGHT

    width = LEFT + len(found) * (WIDTH + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 44}" role="img">',
        f"<title>{call}: Gloo and Roundelay</title>",
        "<style>text{font:12px system-ui,sans-serif;fill:#1c2430}.small{font-size:11px;fill:#4a5568}"
        ".head{font-weight:600}.grid{stroke:#d9dee6}.line{fill:none;stroke-width:2}</style>",
        f'<rect width="{width}" height="{TOP + HEIGHT + 44}" fill="#ffffff"/>',
    ]
    for panel, (ranks, rows) in enumerate(found.items()):
        out.append(f'<g transform="translate({LEFT + panel * (WIDTH + GAP)},{TOP})">')
        out.append(f'<text class="head" x="0" y="-12">{call}, {ranks} ranks</text>')
        for power in range(low, high + 1):
            y = down(10.0**power)
            out.append(f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
            if panel == 0:
                name = time_name(10.0**power)
                out.append(f'<text class="small" x="-6" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
        for size in sizes:
            x = across(size)
            out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}"/>')
            name = size_name(size)
            out.append(f'<text class="small" x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{name}</text>')
        for name, color in COLORS.items():
            points = [(across(size), down(both[name])) for size, both in rows]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline class="line" stroke="{color}" points="{path}"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        if panel == 0:
            for at, (name, color) in enumerate(COLORS.items()):
                y = HEIGHT - 28 + 16 * at
                out.append(f'<circle cx="{WIDTH - 92}" cy="{y - 4}" r="4" fill="{color}"/>')
                out.append(f'<text x="{WIDTH - 82}" y="{y}">{NAMES[name]}</text>')
        out.append("</g>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(picture(sys.argv[1], tables(sys.stdin.read(), sys.argv[1])), end="")
