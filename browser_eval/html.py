"""HTML of a `FormSpec`. Every text goes through `html.escape`; none stands in a script, a style or a template.

The source holds what a visitor would see and nothing of the expectation. Skins: `native` here, the other two in
`browser_eval.skins`.
"""

from __future__ import annotations

from html import escape
from typing import Literal, get_args

from advsim.form import Control, FormSpec, Table, Text

Skin = Literal["native", "aria", "legacy"]
SKINS: tuple[Skin, ...] = get_args(Skin)

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Content security policy of every page made here: no inline script, no other host."""

RECEIVED = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Received</title></head>'
    "<body><h1>Received</h1><p>The form has been received.</p></body></html>"
)

_TYPES = {"text": "text", "number": "number", "date": "date", "checkbox": "checkbox"}


def attributes(**values: str | bool | None) -> str:
    """Attributes as they stand in a tag, with a space before each; False and None are left out."""
    parts = []
    for name, value in values.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {name}")
        elif value is not False and value is not None:
            parts.append(f' {name}="{escape(value)}"')
    return "".join(parts)


def form_page(form: FormSpec, action: str, skin: Skin = "native", assets: str = "/static") -> str:
    """The page of a form.

    Args:
        form: What it shows.
        action: Where it is submitted to.
        skin: How its controls are made.
        assets: Where style and script are served.

    Returns:
        A complete HTML document.
    """
    if skin == "native":
        blocks, controls, script = "".join(map(block, form.blocks)), native_controls(form), "form.js"
    else:
        from browser_eval.skins import dressed

        blocks, controls, script = dressed(form, skin)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(form.title)}</title>"
        f'<link rel="stylesheet" href="{assets}/style.css"><script src="{assets}/{script}" defer></script></head>\n'
        f"<body><h1>{escape(form.title)}</h1>\n{blocks}"
        f"<form{attributes(method='post', action=action, novalidate=True, autocomplete='off')}>\n{controls}</form>\n"
        '<p id="status" role="status"></p></body></html>\n'
    )


def block(part: Text | Table) -> str:
    """A paragraph or a table."""
    if isinstance(part, Text):
        return f"<p>{escape(part.text)}</p>\n"
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in part.header)
    rows = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in part.rows)
    return (
        f"<table><caption>{escape(part.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>\n"
    )


def native_controls(form: FormSpec) -> str:
    """The controls as HTML's own elements."""
    return "".join(_native(form, control, f"c{i}") for i, control in enumerate(form.controls, 1))


def button(form: FormSpec, control: Control) -> str:
    """A button of a form; the submit button of a form with a Review step is disabled at first."""
    gated = control.kind == "submit" and form.review is not None
    return (
        f"<button{attributes(type=control.kind, name=control.key, disabled=control.disabled or gated)}"
        f"{attributes(data_review=control.key == form.review, data_closed=gated and control.disabled)}"
        f">{escape(control.label)}</button>\n"
    )


def _native(form: FormSpec, control: Control, ident: str) -> str:
    if not control.is_field:
        return button(form, control)
    if control.kind == "radio":
        radios = "".join(
            f"<label><input{attributes(type='radio', name=control.key, value=o, checked=o == control.value)}> "
            f"{escape(o)}</label>\n"
            for o in control.options
        )
        return (
            f"<fieldset{attributes(role='radiogroup', disabled=control.disabled)}>"
            f"<legend>{escape(control.label)}</legend>\n{radios}</fieldset>\n"
        )
    label = f'<label for="{ident}">{escape(control.label)}</label>'
    field = native_field(control, ident)
    inner = f"{field} {label}" if control.kind == "checkbox" else f"{label} {field}"
    return f"<div>{inner}</div>\n"


def native_field(control: Control, ident: str, **more: str | bool | None) -> str:
    """The element of a field that is not a radio group, without its label."""
    common = attributes(id=ident, name=control.key, disabled=control.disabled, readonly=control.readonly, **more)
    if control.kind == "select":
        options = "".join(
            f"<option{attributes(value=o, selected=o == control.value)}>{escape(o)}</option>" for o in control.options
        )
        return f"<select{common}>{options}</select>"
    if control.kind == "textarea":
        # The parser drops one line break right after the tag.
        return f"<textarea{common}>\n{escape(control.value)}</textarea>"
    if control.kind == "checkbox":
        return f"<input{attributes(type='checkbox', checked=control.value == 'on')}{common}>"
    step = "any" if control.kind == "number" else None
    return f"<input{attributes(type=_TYPES[control.kind], value=control.value, step=step)}{common}>"
