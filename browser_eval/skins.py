"""Two other dresses of the same form (`docs/skins.md` has what they change in the tree).

`aria`: list boxes, switches and radio groups made of plain elements and script. `legacy`: everything in layout tables,
labels that only stand beside their controls.
"""

from __future__ import annotations

from html import escape

from advsim.form import Control, FormSpec, Table, Text
from browser_eval.html import Skin, attributes, block, button, native_field


def dressed(form: FormSpec, skin: Skin) -> tuple[str, str, str]:
    """HTML of the blocks and of the controls, and the name of the script."""
    if skin == "aria":
        controls = "".join(_aria(form, control, f"c{i}") for i, control in enumerate(form.controls, 1))
        return "".join(map(block, form.blocks)), controls, "aria.js"
    if skin == "legacy":
        rows = "".join(_legacy(form, control, f"c{i}") for i, control in enumerate(form.controls, 1))
        return "".join(map(_legacy_block, form.blocks)), f"<table>\n{rows}</table>\n", "form.js"
    raise ValueError(f"unknown skin {skin!r}")


# --- aria -----------------------------------------------------------------------------------------------------------


def _aria(form: FormSpec, control: Control, ident: str) -> str:
    if not control.is_field:
        return button(form, control)
    named = f"{ident}-name"
    label = f'<span id="{named}">{escape(control.label)}</span>'
    if control.kind not in ("select", "radio", "checkbox"):
        return f"<div>{label} {native_field(control, ident, aria_labelledby=named)}</div>\n"
    # The widget's id is the field's key; what it holds is submitted by the hidden input.
    hidden = attributes(
        type="hidden",
        id=f"{control.key}-value",
        name=control.key,
        value=control.value,
        disabled=control.disabled,
    )
    common = attributes(id=control.key, aria_labelledby=named, aria_disabled="true" if control.disabled else None)
    tab = attributes(tabindex=None if control.disabled else "0")
    if control.kind == "checkbox":
        widget = f'<span role="switch" aria-checked="false"{common}{tab}></span>'
    elif control.kind == "select":
        widget = f'<div role="listbox"{common}{tab}>{_choices(control, "option", "aria-selected")}</div>'
    else:
        widget = f'<div role="radiogroup"{common}>{_choices(control, "radio", "aria-checked")}</div>'
    return f"<div>{label} {widget}<input{hidden}></div>\n"


def _choices(control: Control, role: str, mark: str) -> str:
    off = attributes(aria_disabled="true" if control.disabled else None)
    return "".join(
        f'<div role="{role}" {mark}="false"{attributes(data_value=option)}{off}>{escape(option)}</div>'
        for option in control.options
    )


# --- legacy ---------------------------------------------------------------------------------------------------------


def _legacy(form: FormSpec, control: Control, ident: str) -> str:
    if not control.is_field:
        gated = control.kind == "submit" and form.review is not None
        made = attributes(
            type=control.kind,
            name=control.key,
            value=control.label,
            disabled=control.disabled or gated,
            data_review=control.key == form.review,
            data_closed=gated and control.disabled,
        )
        return f'<tr><td colspan="2"><input{made}></td></tr>\n'
    label = f"<td>{escape(control.label)}</td>"
    if control.kind == "radio":
        common = attributes(type="radio", name=control.key, disabled=control.disabled)
        field = "<br>".join(
            f"<input{common}{attributes(value=o, checked=o == control.value)}>{escape(o)}" for o in control.options
        )
    else:
        # Some old pages give at least a tooltip, which is better than nothing.
        title = control.label if control.kind in ("select", "date") else None
        field = native_field(control, ident, title=title)
    return f"<tr>{label}<td>{field}</td></tr>\n"


def _legacy_block(part: Text | Table) -> str:
    if isinstance(part, Text):
        return f"<div><font>{escape(part.text)}</font></div>\n"
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in (part.header, *part.rows)
    )
    return f"<div><b>{escape(part.caption)}</b></div>\n<table>{rows}</table>\n"
