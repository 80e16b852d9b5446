"""Tests of the package, of its vectors, and of the real Airflow with it."""
