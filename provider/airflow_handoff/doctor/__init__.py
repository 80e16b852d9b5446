"""Checks of a deployment's configuration."""
