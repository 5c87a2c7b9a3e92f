"""A page as a readable, standalone HTML document: for people. Every text in it is escaped; nothing in it can run."""

from __future__ import annotations

from html import escape

from advsim.page import Node, Page, Token

_DEEPEST = 40  # levels of indentation that are still drawn
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1a1a1a; }
.role { color: #5a3ea6; }
.bid { color: #888; font-variant-numeric: tabular-nums; }
.name { white-space: pre-wrap; overflow-wrap: anywhere; }
.value { background: #eef4ff; padding: 0 .3em; border-radius: 3px; white-space: pre-wrap; overflow-wrap: anywhere; }
.flag { color: #9a5b00; }
.focused { outline: 2px solid #3b7ddd; outline-offset: 1px; }
.notice { background: #fff3cd; }
.opaque { color: #a00; font-family: monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
dt { color: #666; } dd { margin: 0 0 .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page_html(page: Page, facts: tuple[tuple[str, str], ...] = ()) -> str:
    """Draw a page.

    Args:
        page: Any page, opaque lines included.
        facts: Pairs of a heading and a text, shown above the tree: goal, last action and the like.

    Returns:
        A whole document without script, links or anything that is fetched; its policy forbids them too.
    """
    above = "".join(f"<dt>{_text(k)}</dt><dd><bdi>{_text(v)}</bdi></dd>" for k, v in facts)
    title = next((n.name for n in page.nodes if n.role == "RootWebArea"), "Page")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>"
        f"<dl>{above}</dl>{''.join(map(_line, page.nodes))}</body></html>\n"
    )


def _text(text: str) -> str:
    # Lone surrogates cannot be written to a file; a NUL is no character of HTML.
    return escape(text.encode("utf-8", "replace").decode().replace("\0", "\ufffd"))


def _line(node: Node) -> str:
    # A flat list, indented by style: a learned world's page may skip levels, and lists cannot.
    classes = "line focused" if node.flag("focused") else "line"
    if node.role in ("banner", "alert", "dialog"):
        classes += " notice"
    indent = f'<div class="{classes}" style="padding-left:{1.4 * min(node.depth, _DEEPEST):g}em">'
    if node.opaque is not None:
        return f'{indent}<bdi class="opaque">{_text(node.opaque)}</bdi></div>'
    bid = "" if node.bid is None else f'<span class="bid">[{node.bid}]</span> '
    parts = [f'{bid}<span class="role">{_text(node.role)}</span> <bdi class="name">{_text(node.name)}</bdi>']
    for key, value in node.props:
        if value is None:
            parts.append(f'<span class="flag">{_text(key)}</span>')
        else:
            shown = value if isinstance(value, str) else value.text if isinstance(value, Token) else str(value)
            parts.append(f'<span class="flag">{_text(key)}</span> <bdi class="value">{_text(shown)}</bdi>')
    return f"{indent}{' '.join(parts)}</div>"
