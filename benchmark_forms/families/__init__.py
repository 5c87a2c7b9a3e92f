"""The families, one module a stratum. Each is a pure function of a random generator and a setting."""
