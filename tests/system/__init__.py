"""System tests: the real Airflow, all versions."""
