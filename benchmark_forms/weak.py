"""A page as a person reads it: who looks at a form knows a label by where it stands and a list by how it looks.

Generated pages name every control and need none of this; the browser's other skins (`docs/skins.md`) do.
"""

from __future__ import annotations

from advsim.page import Node, Page

_FIELDS = frozenset({"textbox", "spinbutton", "Date", "combobox", "checkbox"})
_PLAIN_ROLES = {"listbox": "combobox", "switch": "checkbox"}


def read(page: Page) -> Page:
    """The page with native roles, and with names for controls that only stand beside their labels.

    Returns:
        The page itself if nothing on it needs that. Else list boxes are drop-downs, switches are checkboxes, a nameless
        field has the text before it, a nameless radio the text after it, and such radios stand after a group
        (without a bid) that is named by the text before them.
    """
    if not any(_is_weak(node) for node in page.nodes):
        return page
    found: list[Node] = []
    nodes = page.nodes
    for i, node in enumerate(nodes):
        role = _PLAIN_ROLES.get(node.role, node.role)
        name = node.name
        if not name and role == "radio":
            name = _text_at(nodes, i + 1)
            if i < 2 or nodes[i - 2].role != "radio":
                found.append(Node(node.depth, None, "radiogroup", _text_at(nodes, i - 1)))
        elif not name and role in _FIELDS:
            name = _text_at(nodes, i - 1)
        node = node.replace(role=role, name=name)
        if role == "combobox" and node.get("value") is None:
            node = node.with_prop("value", _chosen(nodes, i))
        found.append(node)
    return Page(found)


def _is_weak(node: Node) -> bool:
    return node.role in _PLAIN_ROLES or (not node.name and (node.role in _FIELDS or node.role == "radio"))


def _text_at(nodes: tuple[Node, ...], i: int) -> str:
    return nodes[i].name if 0 <= i < len(nodes) and nodes[i].role == "StaticText" else ""


def _chosen(nodes: tuple[Node, ...], i: int) -> str:
    for node in nodes[i + 1 :]:
        if node.role != "option":
            break
        if node.flag("selected"):
            return node.name
    return ""
