"""Fixtures for Dag authors' tests."""
