"""Pieces of a page that needs nothing else: text, tables, pictures inside the page."""

import base64
import html
import io
import re

from .trust import grey

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
h3 { margin-bottom: .3rem; }
img { max-width: 100%; height: auto; display: block; margin: .7rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; margin: .5rem 0;
  font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: right; }
th { background: #f4f4f4; }
td { white-space: nowrap; }
th.text, td.text { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 5rem; }
code { font-size: .9em; background: #f4f4f4; padding: 0 .2em; }
td.ahead { color: #0b5e2a; } td.behind { color: #a3260b; } td.grey { color: #9a9a9a; }
td small { color: #777; }
pre { font-size: .8rem; overflow-x: auto; }
p.note { color: #555; font-size: .9rem; }
nav a { margin-right: .9rem; white-space: nowrap; }
summary { cursor: pointer; color: #0b6e99; }
@media print { nav { display: none; } h2 { break-after: avoid; } img, tr { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: .7rem; } body { max-width: none; padding: 0; } }
"""


def text(words):
    """Words as they are; what stands between backticks is a command."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(str(words)))


def paragraph(words, note=False):
    """A paragraph; a note is smaller."""
    return f'<p class="note">{text(words)}</p>' if note else f"<p>{text(words)}</p>"


def items(words):
    """A list."""
    return "<ul>" + "".join(f"<li>{text(word)}</li>" for word in words) + "</ul>"


def cell(value, left):
    """A cell of a table, on the left of its column or on the right; a Ratio is coloured, what
    counts for nothing is grey."""
    if isinstance(value, Ratio):
        return f'<td class="{value.side()}">{value.ratio:.2f}{value.range()}</td>'
    if grey(value):
        return f'<td class="{"text " if left else ""}grey">{text(figure(value))}</td>'
    return (
        f'<td class="text">{text(figure(value))}</td>'
        if left
        else f"<td>{text(figure(value))}</td>"
    )


def is_words(value):
    """Words stand on the left, figures on the right."""
    return isinstance(value, str) and value[:1].isalpha()


def figure(value):
    """A number with three digits; a dash for none."""
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


class Faint(str):
    """Words that count for nothing."""

    grey = True


class Ratio:
    """Our time over another's, in all and in the rounds; grey when it counts for nothing."""

    def __init__(self, ratio, rounds=(), grey=False):
        self.ratio, self.rounds, self.grey = ratio, rounds, grey

    @classmethod
    def of(cls, found):
        """Of a `trust.Against`; None of none."""
        return found and cls(found.ratio, found.rounds, found.grey)

    def range(self):
        """From the least to the greatest round."""
        return (
            f" <small>{min(self.rounds):.2f} to {max(self.rounds):.2f}</small>"
            if len(self.rounds) > 1
            else ""
        )

    def side(self):
        """Which of the two is ahead, when it is worth a colour."""
        if self.grey:
            return "grey"
        return "ahead" if self.ratio < 0.95 else "behind" if self.ratio > 1.05 else ""


def table(head, rows):
    """A table that scrolls by itself where the page is too narrow."""
    left = [any(is_words(row[k]) for row in rows) for k in range(len(head))]
    top = "".join(
        f'<th class="text">{text(word)}</th>' if on_left else f"<th>{text(word)}</th>"
        for word, on_left in zip(head, left)
    )
    body = "".join(
        "<tr>" + "".join(cell(value, on_left) for value, on_left in zip(row, left)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def folded(title, inner):
    """Something long that opens on a touch."""
    return f"<details><summary>{text(title)}</summary>{inner}</details>"


def png(figure):
    """A picture of matplotlib's as the bytes of a PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


def image(content, words, kind="png"):
    """A picture inside the page, of the bytes of its file."""
    return (
        f'<img alt="{html.escape(words, quote=True)}" '
        f'src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'
    )


def link(target, words):
    """A link to a file beside the page."""
    return f'<a href="{html.escape(target, quote=True)}">{text(words)}</a>'


def preformatted(words):
    """Lines as they are."""
    return f"<pre>{html.escape(words)}</pre>"


def page(title, sections):
    """The page; `sections` are (name, title, HTML)."""
    links = " ".join(f'<a href="#{name}">{text(heading)}</a>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}"><h2>{text(heading)}</h2>{inner}</section>'
        for name, heading, inner in sections
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body><h1>{text(title)}</h1><nav>{links}</nav>{body}</body></html>\n"
    )
