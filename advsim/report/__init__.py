"""Reports: tables and plots as pure functions of ledgers."""
