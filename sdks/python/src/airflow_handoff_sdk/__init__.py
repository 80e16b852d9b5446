"""Run Airflow tasks in any Python from 3.8, with nothing of Airflow installed."""

__version__ = "0.1.0"
