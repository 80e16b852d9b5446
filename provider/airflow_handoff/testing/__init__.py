"""Reserved for fixtures for Dag authors' tests; empty today."""
