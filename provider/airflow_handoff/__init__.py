"""Airflow tasks that leave Python and come back: to a person, or to another language.

This module imports nothing: Airflow discovers providers very early, and an import cycle here would
break ``airflow`` itself.
"""

__version__ = "0.1.0"
