"""Rewards and verdicts: one small file an equation or a check."""
