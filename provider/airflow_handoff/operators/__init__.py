"""Operators, under Airflow's own path names, so that migrating is one import prefix."""
