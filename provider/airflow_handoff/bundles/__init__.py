"""Readers of every artifact kind that carries foreign tasks."""
