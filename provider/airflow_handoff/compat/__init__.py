"""The only room that knows Airflow's versions and private paths, one module per seam."""
