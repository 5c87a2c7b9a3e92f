"""Agents: prompt and parse, nothing else. `protocol` says what an episode asks of them."""
