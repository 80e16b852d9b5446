"""Triggers, run by the triggerer on Airflow 3.1 and 3.2."""
