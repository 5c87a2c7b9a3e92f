"""Worlds: `symbolic` (exact form semantics) here, and the real browser in `browser_eval`."""
