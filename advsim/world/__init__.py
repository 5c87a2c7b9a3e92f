"""Worlds: `symbolic` (exact form semantics), `webworld` (a language model), and, in `browser_eval`, the real browser."""
