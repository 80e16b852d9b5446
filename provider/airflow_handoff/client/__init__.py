"""What answers from anywhere: a Python client and the commands, no Airflow needed."""
