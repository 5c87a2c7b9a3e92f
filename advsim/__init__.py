"""AdvSim: train and measure web agents against indirect prompt injection."""

__version__ = "0.1.0"
