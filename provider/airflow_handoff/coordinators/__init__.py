"""Coordinators: run task bodies written in other languages on Airflow 3.3 and later."""
