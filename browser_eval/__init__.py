"""The same tasks on real HTML in a real Chromium: server, accessibility tree, browser world, pool of tabs."""
