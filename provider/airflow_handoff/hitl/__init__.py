"""The question, the answer and the verdict: pure values and functions, no Airflow, no I/O."""
