"""Notifiers that carry a question to the people who answer it."""
